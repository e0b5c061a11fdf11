-- One row a stretch of kernels between two loops that no layer runs: before the first layer of a
-- loop, as where a looped model feeds the input in again, or before the final norm behind the last.
-- grain: trace_id, pass_no, start_line
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- start_line  BIGINT   -  line_no of its first activity
-- end_line    BIGINT   -  line_no after its last activity
-- loop_no     BIGINT   -  the loop that begins or ends
-- region      VARCHAR  -  prologue where a loop begins, epilogue where it ends
select
    b.trace_id,
    b.pass_no,
    f.end_line as start_line,
    b.next_start as end_line,
    n.loop_no,
    if(n.layer_no is null, 'epilogue', 'prologue') as region
from block_spans as b
join final_blocks as f using (trace_id, pass_no, block_no)
join
    block_spans as n
    on n.trace_id = b.trace_id
    and n.pass_no = b.pass_no
    and n.block_no = b.block_no + 1
where b.before_run and f.end_line < b.next_start
