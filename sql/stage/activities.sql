-- One row a device activity: a kernel, copy or fill. Annotations and sync rows are not work. A
-- row that the file has twice (same time, duration, place, correlation and name) counts once. A
-- stream runs one activity after another, or starts the next early (programmatic launch), which
-- then ends later. So a duration overruns where it goes over 100 us past the end of a later
-- activity of its stream and is over 10 times the time to the next start: it counts to there.
-- Bad clocks do that rarely; more than 8 of a trace and more than 1 in 200 do it because they
-- run beside their stream, and count whole.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the event
-- gpu_index    BIGINT   -   0-based position among the trace's activities by (time, tid)
-- kind         VARCHAR  -   kernel, copy or fill
-- name         VARCHAR  -   name as the profiler wrote it
-- device       BIGINT   -   args.device, else the number in the pid
-- stream       BIGINT   -   args.stream, else the number in the tid
-- pid          VARCHAR  -   pid as text
-- tid          VARCHAR  -   tid as text
-- rank_label   VARCHAR  -   label of its rank in a merged file ([TP01-EP01]); NULL in others
-- correlation  BIGINT   -   id shared with the launch; NULL for 0, -1 and none
-- external_id  BIGINT   -   id shared with the operator
-- start_ns     BIGINT   ns  start; NULL when the file gives no time
-- dur_ns       BIGINT   ns  duration that counts; NULL when the file gives none or one below 0
-- end_ns       BIGINT   ns  start + duration that counts
-- raw_dur_ns   BIGINT   ns  duration as the file has it
-- flaw         VARCHAR  -   no_time, no_duration, negative, overrun, beside; NULL for most
-- selected     BOOLEAN  -   inside what the settings choose (device, pid, from, to)
with
    -- Rows that differ in nothing stand together.
    streamed as (
        select
            *,
            hash(ts_ns, dur_ns, correlation, name, tid) as row_hash,
            row_hash = lead(row_hash) over in_stream as again,
            lead(ts_ns) over in_stream as next_ns,
            min(ts_ns + greatest(dur_ns, 0)) over (
                in_stream rows between 1 following and unbounded following
            ) as first_end_ns
        from device_events
        window
            in_stream as (
                partition by trace_id, pid, device, stream
                order by ts_ns, dur_ns, row_hash, event_id desc
            )
    ),

    counted as (
        select
            *,
            dur_ns > 10 * (next_ns - ts_ns) and ts_ns + dur_ns > first_end_ns + 100000 as overruns,
            if(kind = 'kernel', hash(pid, device), null) as place,
            row_number() over in_trace - 1 as gpu_index,
            count(case when overruns then 1 end) over whole as n_overruns,
            count(*) over whole as n,
            min(place) over whole is distinct from max(place) over whole as several,
            min(nullif(ts_ns, 0)) over whole as first_ns
        from streamed
        where ts_ns = 0 or again is not true
        window
            in_trace as (
                partition by trace_id order by ts_ns, try_cast(tid as bigint), tid, event_id
            ),
            whole as (in_trace rows between unbounded preceding and unbounded following)
    ),

    -- A time of zero is none where all else is a second or more later.
    flawed as (
        select
            *,
            case
                when
                    ts_ns is null
                    or (ts_ns = 0 and (coalesce(dur_ns, 0) = 0 or first_ns > 1000000000))
                then 'no_time'
                when dur_ns is null
                then 'no_duration'
                when dur_ns < 0
                then 'negative'
                when overruns
                then if(n_overruns > 8 and 200 * n_overruns > n, 'beside', 'overrun')
            end as flaw,
            case
                when flaw = 'overrun'
                then next_ns - ts_ns
                when coalesce(flaw, 'beside') = 'beside'
                then dur_ns
            end as counted_ns
        from counted
    )

select
    a.trace_id,
    a.event_id,
    a.gpu_index,
    a.kind,
    a.name,
    a.device,
    a.stream,
    a.pid,
    a.tid,
    a.rank_label,
    a.correlation,
    a.external_id,
    if(a.flaw = 'no_time', null, a.ts_ns) as start_ns,
    a.counted_ns as dur_ns,
    if(a.flaw = 'no_time', null, a.ts_ns + coalesce(a.counted_ns, 0)) as end_ns,
    a.dur_ns as raw_dur_ns,
    a.flaw,
    a.flaw is distinct from 'no_time'
    and (s.device is not null or s.pid is not null or not a.several)
    and (s.device is null or a.device = s.device)
    and (s.pid is null or a.pid = s.pid)
    and (s.from_ns is null or a.ts_ns - f.min_ts_ns >= s.from_ns)
    and (s.to_ns is null or a.ts_ns - f.min_ts_ns < s.to_ns) as selected
from flawed as a
join trace_settings as s using (trace_id)
join raw_facts as f using (trace_id)
