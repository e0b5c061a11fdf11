-- One row a block that the trace shows, whole or in part: the stretch of the main line from one
-- boundary to the next. Of a last block that nothing closes only the anchor is sure.
-- grain: trace_id, pass_no, block_no
-- keep: store
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass
-- loop_no     BIGINT   -  0-based visit of its layer within the pass
-- layer_no    BIGINT   -  0-based layer; NULL behind the final norm of a loop
-- slot        VARCHAR  -  which part of the layer it is; NULL as layer_no
-- event_id    BIGINT   -  its anchor; NULL where the begin of the trace cuts it
-- start_line  BIGINT   -  line_no of its first activity
-- end_line    BIGINT   -  line_no after its last activity
-- begun       BOOLEAN  -  its begin is in the trace
-- ended       BOOLEAN  -  its end is in the trace
select
    b.trace_id,
    b.pass_no,
    b.block_no,
    b.loop_no,
    b.layer_no,
    b.slot,
    b.event_id,
    coalesce(c.start_line, b.start_line) as start_line,
    coalesce(c.end_line, f.end_line, b.next_start, m.line_no + 1) as end_line,
    b.role <> 'cut' as begun,
    coalesce(b.next_start, f.end_line) is not null as ended
from block_spans as b
left join cut_blocks as c using (trace_id, pass_no, block_no)
left join
    final_blocks as f
    on f.trace_id = b.trace_id
    and f.pass_no = b.pass_no
    and f.block_no = b.block_no
left join main_line as m on m.trace_id = b.trace_id and m.event_id = b.event_id
where coalesce(c.start_line < c.end_line, true)
