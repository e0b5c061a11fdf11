-- One row a device event as written: a kernel, copy or fill, also what the file has twice or
-- without a time. `activities` has what counts of them.
-- grain: trace_id, event_id
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the event
-- kind         VARCHAR  -   kernel, copy or fill
-- name         VARCHAR  -   name as the profiler wrote it
-- device       BIGINT   -   args.device, else the number in the pid
-- stream       BIGINT   -   args.stream, else the number in the tid
-- pid          VARCHAR  -   pid as text
-- tid          VARCHAR  -   tid as text
-- rank_label   VARCHAR  -   label of its rank in a merged file ([TP01-EP01]); NULL in others
-- correlation  BIGINT   -   id shared with the launch; NULL for 0, -1 and none
-- external_id  BIGINT   -   id shared with the operator
-- ts_ns        BIGINT   ns  start; NULL without one
-- dur_ns       BIGINT   ns  duration; NULL without one
select
    trace_id,
    event_id,
    case
        when lower(cat) = 'kernel'
        then 'kernel'
        when contains(lower(cat), 'memset')
        then 'fill'
        else 'copy'
    end as kind,
    name,
    coalesce(
        device, try_cast(pid as bigint), try_cast(regexp_extract(pid, '\d+$') as bigint)
    ) as device,
    coalesce(
        stream, try_cast(tid as bigint), try_cast(regexp_extract(tid, '\d+$') as bigint)
    ) as stream,
    pid,
    tid,
    rank_label_of(pid) as rank_label,
    if(correlation > 0, correlation, null) as correlation,
    external_id,
    ts_ns,
    dur_ns
from timed_events
where is_device_work(cat)
