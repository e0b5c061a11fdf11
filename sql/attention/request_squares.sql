-- One row a distinct range name of vLLM that tells, of the requests in prefill, their number,
-- their tokens and the squares of these: `execute_context_1(888_788544)_generation_0(0)`.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as written
-- c_n       DOUBLE   -  prefill requests
-- c_sq      DOUBLE   -  sum of their query tokens
-- c_sqsq    DOUBLE   -  sum of squares of these
-- g_n       DOUBLE   -  generation requests
-- g_sq      DOUBLE   -  sum of their query tokens
with
    read as (
        select
            trace_id,
            name,
            regexp_extract(
                name,
                'execute_(?:\d+_)?context_(\d+)\((\d+)_(\d+)\)_generation_(\d+)\((\d+)',
                ['c_n', 'c_sq', 'c_sqsq', 'g_n', 'g_sq']
            ) as told
        from (select distinct trace_id, name from annotations where contains(name, 'execute_'))
    )

select
    trace_id,
    name,
    try_cast(told.c_n as double) as c_n,
    try_cast(told.c_sq as double) as c_sq,
    try_cast(told.c_sqsq as double) as c_sqsq,
    try_cast(told.g_n as double) as g_n,
    try_cast(told.g_sq as double) as g_sq
from read
where told.c_n <> ''
