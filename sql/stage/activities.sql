-- One row a device activity: a kernel, copy or fill. Annotations and sync rows are not work.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the event
-- gpu_index    BIGINT   -   0-based position among the trace's activities by (time, tid)
-- kind         VARCHAR  -   kernel, copy or fill
-- name         VARCHAR  -   name as the profiler wrote it
-- device       BIGINT   -   args.device, else the pid where it is a number
-- stream       BIGINT   -   args.stream, else the tid where it is a number
-- pid          VARCHAR  -   pid as text
-- tid          VARCHAR  -   tid as text
-- correlation  BIGINT   -   id shared with the launch; NULL for 0, -1 and none
-- external_id  BIGINT   -   id shared with the operator
-- start_ns     BIGINT   ns  start; NULL when the file gives no time
-- dur_ns       BIGINT   ns  duration; 0 when the file gives none or a negative one
-- end_ns       BIGINT   ns  start + duration
-- selected     BOOLEAN  -   inside what the settings choose (device, pid, from, to)
with
    device_events as (
        select
            *,
            case
                when lower(cat) = 'kernel'
                then 'kernel'
                when contains(lower(cat), 'memset')
                then 'fill'
                else 'copy'
            end as kind,
            coalesce(device, try_cast(pid as bigint)) as on_device
        from events
        where ph = 'X' and lower(cat) in ('kernel', 'gpu_memcpy', 'memcpy', 'gpu_memset', 'memset')
    ),

    -- Kernels of more than one device or rank: nothing is selected until one is named.
    device_counts as (
        select trace_id, count(distinct(pid, on_device)) as n_devices
        from device_events
        where kind = 'kernel'
        group by trace_id
    )

select
    e.trace_id,
    e.event_id,
    row_number() over (
        partition by e.trace_id order by e.ts_ns, try_cast(e.tid as bigint), e.tid, e.event_id
    )
    - 1 as gpu_index,
    e.kind,
    e.name,
    e.on_device as device,
    coalesce(e.stream, try_cast(e.tid as bigint)) as stream,
    e.pid,
    e.tid,
    case when e.correlation > 0 then e.correlation end as correlation,
    e.external_id,
    e.ts_ns as start_ns,
    greatest(coalesce(e.dur_ns, 0), 0) as dur_ns,
    e.ts_ns + greatest(coalesce(e.dur_ns, 0), 0) as end_ns,
    e.ts_ns is not null
    and (s.device is not null or s.pid is not null or coalesce(c.n_devices, 1) <= 1)
    and (s.device is null or e.on_device = s.device)
    and (s.pid is null or e.pid = s.pid)
    and (s.from_ns is null or e.ts_ns - f.min_ts_ns >= s.from_ns)
    and (s.to_ns is null or e.ts_ns - f.min_ts_ns < s.to_ns) as selected
from device_events as e
join trace_settings as s using (trace_id)
join raw_facts as f using (trace_id)
left join device_counts as c using (trace_id)
