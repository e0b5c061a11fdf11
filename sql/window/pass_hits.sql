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
    hits as (
        select h.trace_id, h.rule_key, h.event_id, m.line_no
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'anchor'
    ),

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
            h.line_no,
            p.n_unseen
            + row_number() over (partition by p.trace_id, p.pass_no order by h.line_no)
            - 1 as hit_no,
            lead(h.line_no, 1, p.next_anchor) over (
                partition by p.trace_id, p.pass_no order by h.line_no
            ) as next_hit
        from hits as h
        asof join
            pass_windows as p
            on p.trace_id = h.trace_id
            and p.rule_key = h.rule_key
            and p.first_hit <= h.line_no
        where h.line_no <= p.last_hit and p.status <> 'refused'
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
