-- One row a kernel name that runs once a pass, between the layers of two passes (embedding, head,
-- sampling), found by counting alone. Of several periods the longest that enough names agree on is
-- a pass, because kernels of a rarer layer type have a period, too; and of its kernels those that
-- stand together, because layer 0 may have its own. Where nothing repeats the trace shows one
-- pass, and names that run once mark its ends.
-- grain: trace_id, device, stream, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- device    BIGINT   -  the device
-- stream    BIGINT   -  the stream
-- name      VARCHAR  -  name as the profiler wrote it
-- n_hits    BIGINT   -  how often it runs on the stream
-- repeats   BOOLEAN  -  it runs in several passes; else in the one that is seen
with
    -- Names that agree on a period; what it explains is the trace but for a pass at either end.
    periods as (
        select trace_id, device, stream, beat, period, count(*) as n_names, max(n_hits) as n_hits
        from pass_rhythms
        where (n_hits - 1) * period <= n_beats and n_beats <= (n_hits + 1) * period
        group by trace_id, device, stream, beat, period
    ),

    best as (
        select trace_id, device, stream, beat, period
        from
            (
                select *, max(n_names) over (partition by trace_id, device, stream) as n_most
                from periods
            )
        where n_names > 1 and 4 * n_names >= n_most
        qualify
            row_number() over (
                partition by trace_id, device, stream order by n_hits, n_names desc, period, beat
            )
            = 1
    ),

    zones as (
        select r.trace_id, r.device, r.stream, r.phase, list(r.name) as names, min(r.name) as mark
        from pass_rhythms as r
        join best as b using (trace_id, device, stream, beat, period)
        group by r.trace_id, r.device, r.stream, r.phase
        qualify
            row_number() over (
                partition by r.trace_id, r.device, r.stream order by count(*) desc, r.phase
            )
            = 1
    ),

    -- A layer's own kernels are in step, too. Between those of two passes one order of kernels
    -- comes several times.
    measured as (
        select
            k.trace_id,
            k.device,
            k.stream,
            k.pair,
            count(case when k.name = z.mark then 1 end) over (
                partition by k.trace_id, k.device, k.stream
                order by k.line_no
                rows unbounded preceding
            ) as pass_no
        from stream_kernels as k
        join
            (select trace_id, device, stream, mark from zones) as z using (trace_id, device, stream)
    ),

    layered as (
        select trace_id, device, stream
        from
            (
                select trace_id, device, stream, pass_no, count(*) / count(distinct pair) as n_times
                from measured
                group by trace_id, device, stream, pass_no
            )
        group by trace_id, device, stream
        having median(n_times) >= 1.75
    ),

    repeating as (
        select trace_id, device, stream, unnest(names) as name
        from zones
        semi join layered using (trace_id, device, stream)
    ),

    -- Once-only kernels of a pass that stand alone among layers are layer 0's or an accident.
    once as (
        select
            k.trace_id,
            k.device,
            k.stream,
            k.name,
            k.line_no,
            k.n_line,
            k.line_no - lag(k.line_no) over in_line as behind,
            lead(k.line_no) over in_line - k.line_no as before
        from stream_kernels as k
        where
            k.n_hits = 1
            and (k.trace_id, k.device, k.stream)
            not in (select (trace_id, device, stream) from layered)
        window in_line as (partition by k.trace_id, k.device, k.stream order by k.line_no)
    )

select r.trace_id, r.device, r.stream, r.name, any_value(k.n_hits) as n_hits, true as repeats
from repeating as r
join stream_kernels as k using (trace_id, device, stream, name)
group by r.trace_id, r.device, r.stream, r.name
union all
select trace_id, device, stream, name, 1 as n_hits, false as repeats
from once
where least(behind, before, line_no, n_line - line_no) <= 4
