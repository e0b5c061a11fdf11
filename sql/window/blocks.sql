-- One row a block that the trace shows, whole or in part: the stretch of the main line from one
-- boundary to the next.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass
-- loop_no     BIGINT   -  0-based visit of the layers within the pass
-- layer_no    BIGINT   -  0-based layer
-- slot        VARCHAR  -  which part of the layer it is
-- event_id    BIGINT   -  its anchor; NULL where the begin of the trace cuts it
-- start_line  BIGINT   -  line_no of its first activity
-- end_line    BIGINT   -  line_no after its last activity
-- begun       BOOLEAN  -  its begin is in the trace
-- ended       BOOLEAN  -  its end is in the trace
with
    bounded as (
        select
            s.*,
            p.next_anchor,
            p.n_layers,
            r.slots,
            r.blocks_per_layer,
            lead(s.start_line) over (
                partition by s.trace_id, s.pass_no order by s.block_no
            ) as next_start
        from block_starts as s
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r using (rule_key)
    ),

    open_ends as (
        select * from bounded where next_start is null and block_no < blocks_per_layer * n_layers
    ),

    -- The last block of a pass whose rule names no kernel that closes it: it ends where an earlier
    -- block of its slot, found again at its begin in full, ends.
    tails as (
        select
            o.trace_id,
            o.pass_no,
            o.block_no,
            any_value(o.start_line) as start_line,
            list(m.name order by m.line_no) as names
        from open_ends as o
        join
            main_line as m
            on m.trace_id = o.trace_id
            and m.line_no >= o.start_line
            and m.line_no < o.next_anchor
        where o.block_no = o.blocks_per_layer * o.n_layers - 1
        group by o.trace_id, o.pass_no, o.block_no
    ),

    patterns as (
        select
            t.trace_id,
            t.pass_no,
            t.block_no,
            b.block_no as like_block,
            list(m.name order by m.line_no) as names
        from tails as t
        join bounded as o using (trace_id, pass_no, block_no)
        join
            bounded as b
            on b.trace_id = t.trace_id
            and b.pass_no = t.pass_no
            and b.next_start is not null
            and b.block_no % b.blocks_per_layer = t.block_no % b.blocks_per_layer
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.next_start
        group by t.trace_id, t.pass_no, t.block_no, b.block_no
    ),

    matched as (
        select t.trace_id, t.pass_no, t.block_no, max(t.start_line + len(p.names)) as end_line
        from tails as t
        join patterns as p using (trace_id, pass_no, block_no)
        where t.names[1:len(p.names)] = p.names
        group by t.trace_id, t.pass_no, t.block_no
    )

select
    b.trace_id,
    b.pass_no,
    b.block_no,
    cast(0 as bigint) as loop_no,
    divide(b.block_no, b.blocks_per_layer) as layer_no,
    b.slots[b.block_no % b.blocks_per_layer + 1] as slot,
    b.event_id,
    b.start_line,
    coalesce(b.next_start, t.end_line, b.next_anchor) as end_line,
    b.role <> 'cut' as begun,
    coalesce(b.next_start, t.end_line) is not null as ended
from bounded as b
left join matched as t using (trace_id, pass_no, block_no)
where
    b.block_no < b.blocks_per_layer * b.n_layers
    and b.start_line < coalesce(b.next_start, t.end_line, b.next_anchor)
