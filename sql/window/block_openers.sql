-- One row a kernel that opens a block of a pass, or closes its last block.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- rule_key  INTEGER  -  the boundary rule
-- block_no  BIGINT   -  0-based block within the whole pass; the block count closes the last
-- event_id  BIGINT   -  the kernel
-- role      VARCHAR  -  entry, block or close
-- line_no   BIGINT   -  its position on the main line
with
    hits as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            h.event_id,
            m.line_no,
            r.first_block
            + p.n_unseen
            + row_number() over (partition by p.trace_id, p.pass_no order by m.line_no)
            - 1 as block_no,
            r.blocks_per_layer * p.n_layers as n_blocks
        from pass_windows as p
        join boundary_rules as r using (rule_key)
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
    ),

    -- The entry kernel opens block 0. Where the same kernel occurs elsewhere, it is the first one
    -- behind the last marker before the anchors.
    entries as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            arg_min(h.event_id, m.line_no) as event_id,
            min(m.line_no) as line_no
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        join
            anchor_hits as h
            on h.trace_id = p.trace_id
            and h.rule_key = p.rule_key
            and h.role = 'entry'
        join
            main_line as m
            on m.trace_id = h.trace_id
            and m.event_id = h.event_id
            and m.line_no < p.first_hit
            and m.line_no >= if(r.entry_ambiguous, p.begin_line, p.prev_anchor)
        where p.opened and p.status <> 'refused'
        group by p.trace_id, p.pass_no, p.rule_key
    ),

    exits as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            arg_min(h.event_id, m.line_no) as event_id,
            min(m.line_no) as line_no,
            any_value(r.blocks_per_layer * p.n_layers) as block_no
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        join
            anchor_hits as h
            on h.trace_id = p.trace_id
            and h.rule_key = p.rule_key
            and h.role = 'exit'
        join
            main_line as m
            on m.trace_id = h.trace_id
            and m.event_id = h.event_id
            and m.line_no > p.last_hit
            and m.line_no < p.next_anchor
        where p.status in ('complete', 'cut_start') and r.last_is = 'block'
        group by p.trace_id, p.pass_no, p.rule_key
    )

select
    trace_id,
    pass_no,
    rule_key,
    block_no,
    event_id,
    if(block_no = n_blocks, 'close', 'block') as role,
    line_no
from hits
union all
select trace_id, pass_no, rule_key, 0, event_id, 'entry', line_no
from entries
union all
select trace_id, pass_no, rule_key, block_no, event_id, 'close', line_no
from exits
