-- One row an operation of attention whose launches tell their grid: how many blocks of threads its
-- attending kernels start with. Replayed graphs tell none.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- op_no     BIGINT   -  the operation
-- n_blocks  DOUBLE   -  thread blocks of a launch: mean of the kernel that attends longest
with
    launched as (
        select
            p.trace_id,
            p.op_no,
            a.name,
            a.dur_ns,
            try_cast(json_extract(e.args, '$.grid') as double[]) as grid,
            finite(grid[1] * grid[2] * grid[3]) as n_blocks
        from attention_populations as p
        join attention_activities as c using (trace_id, call_no)
        join activities as a on a.trace_id = c.trace_id and a.event_id = c.event_id
        join events as e on e.trace_id = c.trace_id and e.event_id = c.event_id
        where c.role = 'core'
    ),

    sums as (
        select
            trace_id,
            op_no,
            name,
            sum(dur_ns) as sum_ns,
            avg(n_blocks) filter (n_blocks between 1 and 1e15) as n_blocks
        from launched
        group by trace_id, op_no, name
    )

select trace_id, op_no, arg_max(n_blocks, (sum_ns, name)) as n_blocks
from sums
group by trace_id, op_no
having n_blocks is not null
