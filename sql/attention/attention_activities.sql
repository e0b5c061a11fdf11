-- One row a device activity of an attention call, with what it does there.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id  VARCHAR  -   the trace
-- event_id  BIGINT   -   the activity
-- call_no   BIGINT   -   its call: 0-based, in order of start
-- role      VARCHAR  -   as in attention_names, such as core; else gemm, copy, fill or other
-- start_ns  BIGINT   ns  start
-- end_ns    BIGINT   ns  end
-- dur_ns    BIGINT   ns  duration
select
    c.trace_id,
    c.event_id,
    c.call_no,
    coalesce(
        n.role,
        case
            when a.kind <> 'kernel'
            then a.kind
            when starts_with(k.category, 'gemm')
            then 'gemm'
            else 'other'
        end
    ) as role,
    a.start_ns,
    a.end_ns,
    a.dur_ns
from call_activities as c
join activities as a using (trace_id, event_id)
left join attention_names as n on n.trace_id = a.trace_id and n.name = a.name
left join name_classes as k on k.trace_id = a.trace_id and k.name = a.name
