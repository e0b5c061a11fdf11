-- One row a block that the trace shows, whole or in part, with the boundaries around it.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass
-- layer_no    BIGINT   -  0-based layer
-- slot        VARCHAR  -  which part of the layer it is
-- is_final    BOOLEAN  -  the last block of a whole pass
-- event_id    BIGINT   -  its anchor; NULL where the begin of the trace cuts it
-- role        VARCHAR  -  entry, block or cut
-- start_line  BIGINT   -  line_no of its first activity
-- next_start  BIGINT   -  line_no of the first activity of what follows; NULL when open
-- limit_line  BIGINT   -  line_no of the first anchor behind the pass
with
    bounded as (
        select
            s.*,
            p.next_anchor as limit_line,
            r.blocks_per_layer * p.n_layers as n_blocks,
            r.slots,
            r.blocks_per_layer,
            lead(s.start_line) over (
                partition by s.trace_id, s.pass_no order by s.block_no
            ) as next_start
        from block_starts as s
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r using (rule_key)
    )

select
    trace_id,
    pass_no,
    block_no,
    divide(block_no, blocks_per_layer) as layer_no,
    slots[block_no % blocks_per_layer + 1] as slot,
    block_no = n_blocks - 1 as is_final,
    event_id,
    role,
    start_line,
    next_start,
    limit_line
from bounded
where block_no < n_blocks and start_line < coalesce(next_start, limit_line)
