-- One row an activity whose operator is recorded: by its own launch, or for a graph replay by
-- the launch at the same place of the capture trace; by id, or where no id tells by time on its
-- thread.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id           VARCHAR  -  the trace
-- event_id           BIGINT   -  the activity
-- operator           VARCHAR  -  name of the operator
-- input_dims         VARCHAR  -  its recorded input shapes as JSON text; NULL when none
-- operator_event_id  BIGINT   -  the operator, in the trace that holds the host program
-- link               VARCHAR  -  id or time
with
    linked as (
        select h.*, o.event_id as by_id, o.name, o.input_dims, t.operator_event_id as by_time
        from activity_origins as h
        left join
            operators as o
            on o.trace_id = h.host_trace_id
            and o.external_id = h.external_id
            and o.rank_label is not distinct from h.rank_label
        left join
            call_operators as t on t.trace_id = h.host_trace_id and t.event_id = h.host_event_id
        where o.event_id is not null or t.operator_event_id is not null
    )

select
    l.trace_id,
    l.event_id,
    coalesce(l.name, e.name) as operator,
    coalesce(l.input_dims, json_extract_string(e.args, '$."Input Dims"')) as input_dims,
    coalesce(l.by_id, l.by_time) as operator_event_id,
    if(l.by_id is not null, 'id', 'time') as link
from linked as l
left join events as e on l.by_id is null and e.trace_id = l.host_trace_id and e.event_id = l.by_time
