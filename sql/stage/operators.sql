-- One row an operator, by the id that its activities carry. Ranks of a merged file reuse ids.
-- grain: trace_id, rank_label, external_id
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- rank_label   VARCHAR  -  label of its rank in a merged file; NULL in others
-- external_id  BIGINT   -  args["External id"]
-- event_id     BIGINT   -  the operator
-- name         VARCHAR  -  its name
-- input_dims   VARCHAR  -  recorded input shapes as JSON text; NULL when none
select
    trace_id,
    rank_label_of(pid) as rank_label,
    external_id,
    max(event_id) as event_id,
    arg_max(name, event_id) as name,
    arg_max(json_extract_string(args, '$."Input Dims"'), event_id) as input_dims
from timed_events
where is_operator(cat) and external_id > 0
group by all
