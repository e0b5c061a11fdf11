-- One row an activity of attention without a fused kernel: whatever was launched from the begin of
-- its first product to the end of its last, masks, scales and copies included.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id          VARCHAR  -  the trace
-- event_id          BIGINT   -  the activity
-- host_trace_id     VARCHAR  -  the trace that holds its operators; NULL where kernels tell
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
    ),

    found as (
        select
            trace_id,
            event_id,
            host_trace_id,
            softmax_event_id,
            min(event_id) over (
                partition by
                    trace_id,
                    softmax_event_id,
                    if(trace_id = host_trace_id, 0, coalesce(correlation, 0))
            ) as lead_event_id
        from inside
        union all
        select trace_id, event_id, null as host_trace_id, softmax_event_id, lead_event_id
        from unfused_kernels
    )

select f.trace_id, f.event_id, f.host_trace_id, f.softmax_event_id, f.lead_event_id
from found as f
anti join operator_activities as o on o.trace_id = f.trace_id and o.event_id = f.event_id
