-- One row a selected kernel of a stream that runs more than a few: its place in the stream's order.
-- Two stretches between whose ends chain grows by as much run the same kernels, each followed by
-- the same one. Names are not read, only compared: a model that no rule knows has an order, too.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the kernel
-- device    BIGINT   -  its device
-- stream    BIGINT   -  its stream
-- line_no   BIGINT   -  0-based position on the stream
-- name      VARCHAR  -  name as the profiler wrote it
-- hit_no    BIGINT   -  0-based position among the kernels of its name on the stream
-- n_hits    BIGINT   -  kernels of its name on the stream
-- n_line    BIGINT   -  kernels of the stream
-- pair      UBIGINT  -  hash of its name and the next one's
-- chain     HUGEINT  -  sum of pair over all kernels before it
with
    placed as (
        select
            trace_id,
            event_id,
            device,
            stream,
            name,
            row_number() over in_line - 1 as line_no,
            hash(name, lead(name) over in_line) as pair
        from activities
        where selected and kind = 'kernel' and name is not null
        window in_line as (partition by trace_id, device, stream order by start_ns, gpu_index)
    )

select
    trace_id,
    event_id,
    device,
    stream,
    line_no,
    name,
    row_number() over (partition by trace_id, device, stream, name order by line_no) - 1 as hit_no,
    count(*) over (partition by trace_id, device, stream, name) as n_hits,
    count(*) over (partition by trace_id, device, stream) as n_line,
    pair,
    coalesce(
        sum(pair) over (
            partition by trace_id, device, stream
            order by line_no
            rows between unbounded preceding and 1 preceding
        ),
        0
    ) as chain
from placed
qualify n_line >= 16
