-- One row an operator with recorded shapes, by the id that its activities carry.
-- grain: trace_id, external_id
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- external_id  BIGINT   -  args["External id"]
-- event_id     BIGINT   -  the operator
-- name         VARCHAR  -  its name
-- input_dims   VARCHAR  -  recorded input shapes as JSON text; NULL when none
select
    trace_id,
    external_id,
    max(event_id) as event_id,
    arg_max(name, event_id) as name,
    arg_max(json_extract_string(args, '$."Input Dims"'), event_id) as input_dims
from events
where cat in ('cpu_op', 'Operator') and external_id is not null
group by trace_id, external_id
