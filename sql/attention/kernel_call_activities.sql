-- One row an activity of a call that kernel names alone tell. On a stream every kernel that attends
-- is a call of its own, with the kernels that prepare it before and finish it behind, and so is
-- every one that writes the cache. What quantizes queries and keys stands in front of an operator's
-- call, too.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- event_id       BIGINT   -  the activity
-- lead_event_id  BIGINT   -  the kernel of its call that attends, or writes the cache
with
    numbered as (
        select
            a.trace_id,
            a.event_id,
            a.pid,
            a.device,
            a.stream,
            w.role,
            w.place,
            o.event_id is not null as is_taken,
            row_number() over in_stream as number,
            if(
                w.role = 'core',
                {'event_id':a.event_id, 'number':row_number() over in_stream, 'is_taken':is_taken},
                null
            ) as core,
            w.direction,
            coalesce(w.implementation = 'linear', false) as is_linear
        from activities as a
        left join attention_words as w on w.trace_id = a.trace_id and w.name = a.name
        left join operator_activities as o on o.trace_id = a.trace_id and o.event_id = a.event_id
        anti join unfused_activities as u on u.trace_id = a.trace_id and u.event_id = a.event_id
        where a.kind = 'kernel' and a.selected
        window
            in_stream as (partition by a.trace_id, a.pid, a.device, a.stream order by a.gpu_index)
    ),

    reached as (
        select
            trace_id,
            event_id,
            role,
            number,
            is_taken,
            case
                when role in ('core', 'kv_write')
                then core
                when place = 'before'
                then
                    first_value(core ignore nulls) over (
                        in_stream rows between current row and unbounded following
                    )
                when place = 'after'
                then last_value(core ignore nulls) over in_stream
            end as core
        from numbered
        where
            role in ('core', 'combine', 'step', 'quantize', 'kv_write')
            and (not is_taken or role = 'core')
        -- Recomputed steps of a forward pass prepare the backward one of linear attention.
        window
            in_stream as (
                partition by
                    trace_id, pid, device, stream, if(is_linear, 'linear', coalesce(direction, ''))
                order by number
            )
    )

select trace_id, event_id, if(role = 'kv_write', event_id, core.event_id) as lead_event_id
from reached
where
    not is_taken
    and (
        role in ('core', 'kv_write')
        -- Other kernels may stand between, but few.
        or (abs(core.number - number) <= 12 and (not core.is_taken or role = 'quantize'))
    )
