-- One row an activity of attention without a fused kernel: whatever was launched from the begin of
-- its first product to the end of its last, masks, scales and copies included.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id          VARCHAR  -  the trace
-- event_id          BIGINT   -  the activity
-- host_trace_id     VARCHAR  -  the trace that holds its operators
-- softmax_event_id  BIGINT   -  the softmax
-- lead_event_id     BIGINT   -  first activity of the call
with
    inside as (
        select
            o.trace_id, o.event_id, o.host_trace_id, s.event_id as softmax_event_id, a.correlation
        from activity_origins as o
        join activities as a on a.trace_id = o.trace_id and a.event_id = o.event_id
        asof join
            unfused_spans as s
            on s.trace_id = o.host_trace_id
            and s.pid = o.pid
            and s.tid = o.tid
            and s.start_ns <= o.launch_ns
        where o.launch_ns < s.end_ns
    )

select
    i.trace_id,
    i.event_id,
    i.host_trace_id,
    i.softmax_event_id,
    min(i.event_id) over (
        partition by
            i.trace_id,
            i.softmax_event_id,
            if(i.trace_id = i.host_trace_id, 0, coalesce(i.correlation, 0))
    ) as lead_event_id
from inside as i
anti join operator_activities as o on o.trace_id = i.trace_id and o.event_id = i.event_id
