-- One row a kernel name of a stream that runs as often in each whole pass and never between passes:
-- what may open the blocks of its layers.
-- grain: trace_id, device, stream, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- device    BIGINT   -  the device
-- stream    BIGINT   -  the stream
-- name      VARCHAR  -  name as the profiler wrote it
-- per_pass  BIGINT   -  kernels of the name in a pass
-- n_passes  BIGINT   -  whole passes
-- n_before  BIGINT   -  kernels of the name before the first whole pass
-- lead      BIGINT   -  kernels of a pass before its first one, median of the passes
with
    first_line as (
        select trace_id, device, stream, min(begin_line) as first_whole, count(*) as n_passes
        from layer_stretches
        where whole
        group by trace_id, device, stream
    ),

    placed as (
        select
            k.*,
            s.begin_line,
            s.whole and k.line_no < s.end_line as in_whole,
            f.first_whole,
            f.n_passes
        from stream_kernels as k
        join first_line as f using (trace_id, device, stream)
        asof left join
            layer_stretches as s
            on s.trace_id = k.trace_id
            and s.device = k.device
            and s.stream = k.stream
            and s.begin_line <= k.line_no
    ),

    in_passes as (
        select
            trace_id,
            device,
            stream,
            name,
            begin_line,
            any_value(n_passes) as n_passes,
            count(*) as n,
            min(line_no) - begin_line as lead
        from placed
        where in_whole
        group by trace_id, device, stream, name, begin_line
    ),

    -- Behind the last mark a pass may be cut; before the first one, too.
    strays as (
        select
            p.trace_id,
            p.device,
            p.stream,
            p.name,
            count(*) filter (p.line_no < p.first_whole) as n_before,
            count(*) filter (
                not coalesce(p.in_whole, false)
                and p.line_no >= p.first_whole
                and p.line_no < e.last_whole
            ) as n_between
        from placed as p
        join
            (
                select trace_id, device, stream, max(end_line) as last_whole
                from layer_stretches
                where whole
                group by trace_id, device, stream
            ) as e using (trace_id, device, stream)
        group by p.trace_id, p.device, p.stream, p.name
    )

select
    i.trace_id,
    i.device,
    i.stream,
    i.name,
    min(i.n) as per_pass,
    any_value(i.n_passes) as n_passes,
    any_value(s.n_before) as n_before,
    cast(median(i.lead) as bigint) as lead
from in_passes as i
join strays as s using (trace_id, device, stream, name)
group by i.trace_id, i.device, i.stream, i.name
having
    min(i.n) = max(i.n)
    and min(i.n) > 1
    and count(*) = any_value(i.n_passes)
    and any_value(s.n_between) = 0
