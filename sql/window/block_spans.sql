-- One row a block that the trace shows, whole or in part, with the boundaries around it.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass
-- loop_no     BIGINT   -  0-based visit of its layer
-- layer_no    BIGINT   -  0-based layer; NULL behind the final norm of a loop
-- slot        VARCHAR  -  which part of the layer it is
-- is_final    BOOLEAN  -  the last block of a whole pass
-- before_run  BOOLEAN  -  the last block before a loop begins, or before its final norm
-- event_id    BIGINT   -  its anchor; NULL where the begin of the trace cuts it
-- role        VARCHAR  -  entry, block, norm or cut
-- start_line  BIGINT   -  line_no of its first activity
-- next_start  BIGINT   -  line_no of the first activity of what follows; NULL when open
-- limit_line  BIGINT   -  line_no of the first anchor behind the pass
with
    bounded as (
        select
            s.*,
            t.loop_no,
            t.layer_no,
            t.slot,
            coalesce(
                lead(t.opens_run or (t.layer_no is null and s.block_no < p.n_blocks)) over (
                    partition by s.trace_id, s.pass_no order by s.block_no
                ),
                false
            ) as before_run,
            p.next_anchor as limit_line,
            p.n_blocks,
            lead(s.start_line) over (
                partition by s.trace_id, s.pass_no order by s.block_no
            ) as next_start
        from block_starts as s
        join pass_windows as p using (trace_id, pass_no)
        left join pass_templates as t using (trace_id, rule_key, n_layers, depth, resets, block_no)
    )

select
    trace_id,
    pass_no,
    block_no,
    loop_no,
    layer_no,
    slot,
    block_no = n_blocks - 1 as is_final,
    before_run and layer_no is not null as before_run,
    event_id,
    role,
    start_line,
    next_start,
    limit_line
from bounded
where block_no < n_blocks and start_line < coalesce(next_start, limit_line)
