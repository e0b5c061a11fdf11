-- One row a kernel name and a frequent name of its stream that runs equally often between any two
-- of its kernels: what repeats in step with something.
-- grain: trace_id, device, stream, name, beat
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- device    BIGINT   -  the device
-- stream    BIGINT   -  the stream
-- name      VARCHAR  -  the rarer name
-- beat      VARCHAR  -  the frequent name
-- n_hits    BIGINT   -  kernels of the rarer name
-- n_beats   BIGINT   -  kernels of the frequent name
-- period    BIGINT   -  kernels of the frequent name between two of the rarer one
-- phase     BIGINT   -  frequent ones before the first rarer one, less whole periods
with
    names as (select distinct trace_id, device, stream, name, n_hits from stream_kernels),

    -- Whatever is frequent runs in layers; five names, because some run at odd times, too.
    beats as (
        select trace_id, device, stream, name as beat, n_hits as n_beats
        from names
        where n_hits > 1
        qualify
            row_number() over (partition by trace_id, device, stream order by n_hits desc, name)
            <= 5
    ),

    rare as (
        select k.trace_id, k.device, k.stream, k.name, k.line_no, b.beat, b.n_beats
        from stream_kernels as k
        join beats as b using (trace_id, device, stream)
        where k.n_hits > 1 and 2 * k.n_hits <= b.n_beats
    ),

    counted as (
        select r.*, coalesce(h.hit_no + 1, 0) as n_before
        from rare as r
        asof left join
            stream_kernels as h
            on h.trace_id = r.trace_id
            and h.device = r.device
            and h.stream = r.stream
            and h.name = r.beat
            and h.line_no <= r.line_no
    ),

    spaced as (
        select
            *,
            n_before - lag(n_before) over (
                partition by trace_id, device, stream, beat, name order by line_no
            ) as apart
        from counted
    ),

    spacings as (
        select
            trace_id,
            device,
            stream,
            beat,
            name,
            apart,
            count(*) as n_same,
            any_value(n_beats) as n_beats,
            min(n_before) as n_before
        from spaced
        group by trace_id, device, stream, beat, name, apart
    )

select
    trace_id,
    device,
    stream,
    name,
    beat,
    cast(sum(n_same) as bigint) as n_hits,
    any_value(n_beats) as n_beats,
    arg_max(apart, n_same) filter (apart is not null) as period,
    arg_min(n_before, n_before)
    % nullif(arg_max(apart, n_same) filter (apart is not null), 0) as phase
from spacings
group by trace_id, device, stream, name, beat
-- The last step of a trace may differ, or the first.
having
    arg_max(apart, n_same) filter (apart is not null) > 1
    and 10 * max(n_same) filter (apart is not null) >= 8 * (sum(n_same) - 1)
