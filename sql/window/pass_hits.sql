-- One row an anchor of a pass that fits a rule, with what it is by the rule's template. Anchors
-- that a layer has inside a block are left out: they bound nothing.
-- grain: trace_id, pass_no, hit_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- rule_key  INTEGER  -  the boundary rule
-- hit_no    BIGINT   -  0-based anchor of the whole pass
-- block_no  BIGINT   -  0-based block that it opens; the block count closes the last
-- event_id  BIGINT   -  the kernel
-- role      VARCHAR  -  block, norm (between two loops) or close
-- line_no   BIGINT   -  its position on the main line
-- next_hit  BIGINT   -  line_no of the next anchor; behind the last one of the next pass's
with
    numbered as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            p.n_layers,
            p.depth,
            p.resets,
            p.n_blocks,
            h.event_id,
            m.line_no,
            p.n_unseen
            + row_number() over (partition by p.trace_id, p.pass_no order by m.line_no)
            - 1 as hit_no,
            lead(m.line_no, 1, p.next_anchor) over (
                partition by p.trace_id, p.pass_no order by m.line_no
            ) as next_hit
        from pass_windows as p
        join
            anchor_hits as h
            on h.trace_id = p.trace_id
            and h.rule_key = p.rule_key
            and h.role = 'anchor'
        join
            main_line as m
            on m.trace_id = h.trace_id
            and m.event_id = h.event_id
            and m.line_no between p.first_hit and p.last_hit
        where p.status <> 'refused'
    )

select
    n.trace_id,
    n.pass_no,
    n.rule_key,
    n.hit_no,
    t.block_no,
    n.event_id,
    case
        when t.block_no = n.n_blocks then 'close' when t.layer_no is null then 'norm' else 'block'
    end as role,
    n.line_no,
    n.next_hit
from numbered as n
join pass_templates as t using (trace_id, rule_key, n_layers, depth, resets, hit_no)
