-- One row an activity whose operator is recorded: by its own launch, or for a graph replay by the
-- launch at the same place of the capture trace.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id    VARCHAR  -  the trace
-- event_id    BIGINT   -  the activity
-- operator    VARCHAR  -  name of the operator
-- input_dims  VARCHAR  -  its recorded input shapes as JSON text; NULL when none
select h.trace_id, h.event_id, o.name as operator, o.input_dims
from activity_origins as h
join operators as o on o.trace_id = h.host_trace_id and o.external_id = h.external_id
