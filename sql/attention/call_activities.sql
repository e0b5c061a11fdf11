-- One row a device activity of an attention call. What an operator launched is one call; what no
-- operator covers is found by the order of operators (unfused attention) or by kernel names.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- event_id      BIGINT   -  the activity
-- call_no       BIGINT   -  its call: 0-based, in order of start
-- way           VARCHAR  -  how the call was found: operator, unfused or kernels
-- key_event_id  BIGINT   -  the operator, in the trace that holds the host program; else the kernel
-- replay        BIGINT   -  correlation of the graph launch that ran a captured operator; else 0
with
    -- A call that an operator covers is none of its own.
    found as (
        select trace_id, event_id, 'operator' as way, operator_event_id as key_event_id, replay
        from operator_activities
        union all
        select
            u.trace_id, u.event_id, 'unfused' as way, u.lead_event_id as key_event_id, 0 as replay
        from unfused_activities as u
        anti join
            operator_activities as o on o.trace_id = u.trace_id and o.event_id = u.lead_event_id
        union all
        select
            k.trace_id, k.event_id, 'kernels' as way, k.lead_event_id as key_event_id, 0 as replay
        from kernel_call_activities as k
        anti join
            operator_activities as o on o.trace_id = k.trace_id and o.event_id = k.lead_event_id
        anti join
            unfused_activities as u on u.trace_id = k.trace_id and u.event_id = k.lead_event_id
        union all
        select
            k.trace_id, k.event_id, 'operator' as way, o.operator_event_id as key_event_id, o.replay
        from kernel_call_activities as k
        join operator_activities as o on o.trace_id = k.trace_id and o.event_id = k.lead_event_id
    ),

    owned as (
        select
            f.*,
            min(a.gpu_index) over (
                partition by f.trace_id, f.way, f.key_event_id, f.replay
            ) as first_index
        from found as f
        join activities as a using (trace_id, event_id)
        where a.selected
        qualify
            row_number() over (
                partition by f.trace_id, f.event_id order by f.way = 'kernels', f.way = 'unfused'
            )
            = 1
    )

select
    trace_id,
    event_id,
    dense_rank() over (partition by trace_id order by first_index, way, key_event_id, replay)
    - 1 as call_no,
    way,
    key_event_id,
    replay
from owned
