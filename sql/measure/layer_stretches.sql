-- One row a stretch of a stream without pass marks that can hold the layers of a pass: at least
-- half as long as the longest.
-- grain: trace_id, device, stream, begin_line
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- device      BIGINT   -  the device
-- stream      BIGINT   -  the stream
-- begin_line  BIGINT   -  line_no of its first kernel
-- end_line    BIGINT   -  line_no after its last kernel
-- begun       BOOLEAN  -  a pass mark stands before it
-- ended       BOOLEAN  -  a pass mark stands behind it
-- whole       BOOLEAN  -  marks at both ends; where no stretch has both, the longest
with
    marks as (
        select
            k.trace_id,
            k.device,
            k.stream,
            k.line_no,
            k.n_line,
            lead(k.line_no, 1, k.n_line) over (
                partition by k.trace_id, k.device, k.stream order by k.line_no
            ) as next_mark
        from stream_kernels as k
        semi join pass_marks as p using (trace_id, device, stream, name)
    ),

    stretches as (
        select
            trace_id,
            device,
            stream,
            line_no + 1 as begin_line,
            next_mark as end_line,
            true as begun,
            next_mark < n_line as ended
        from marks
        union all
        -- Before the first mark.
        select
            k.trace_id,
            k.device,
            k.stream,
            0 as begin_line,
            coalesce(min(m.line_no), any_value(k.n_line)) as end_line,
            false as begun,
            min(m.line_no) is not null as ended
        from (select distinct trace_id, device, stream, n_line from stream_kernels) as k
        left join marks as m using (trace_id, device, stream)
        group by k.trace_id, k.device, k.stream
    ),

    sized as (
        select
            *,
            max(end_line - begin_line) over in_stream as longest,
            bool_or(begun and ended and 2 * (end_line - begin_line) >= n_max) over in_stream
            as closed
        from
            (
                select
                    *,
                    max(end_line - begin_line) over (partition by trace_id, device, stream) as n_max
                from stretches
            )
        window in_stream as (partition by trace_id, device, stream)
    )

select
    trace_id,
    device,
    stream,
    begin_line,
    end_line,
    begun,
    ended,
    if(closed, begun and ended, end_line - begin_line = longest) as whole
from sized
where 2 * (end_line - begin_line) >= longest
