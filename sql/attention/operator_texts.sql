-- One row an operator that is a call of attention, with its recorded arguments as they were
-- written.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id         VARCHAR  -  the trace that holds it
-- event_id         BIGINT   -  the operator
-- name             VARCHAR  -  its name as written
-- operator         VARCHAR  -  the same, without the number that a profiler's hook adds
-- input_dims       VARCHAR  -  recorded shapes as JSON text
-- input_types      VARCHAR  -  recorded types as JSON text
-- input_strides    VARCHAR  -  recorded strides as JSON text
-- concrete_inputs  VARCHAR  -  recorded scalars as JSON text
-- sequence_no      BIGINT   -  ties a backward to its forward; NULL when none
select
    trace_id,
    event_id,
    name,
    regexp_replace(name, '^(sglang_profiler::.*)_\d+$', '\1') as operator,
    json_extract(args, '$."Input Dims"')::varchar as input_dims,
    json_extract(args, '$."Input type"')::varchar as input_types,
    json_extract(args, '$."Input Strides"')::varchar as input_strides,
    json_extract(args, '$."Concrete Inputs"')::varchar as concrete_inputs,
    try_cast(json_extract_string(args, '$."Sequence number"') as bigint) as sequence_no
from attention_operators
