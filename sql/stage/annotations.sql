-- One row a named range of the program: record_function, step markers, profiler steps.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id      VARCHAR  -   the trace
-- event_id      BIGINT   -   the event
-- side          VARCHAR  -   host, or device for the copy on a device track
-- kind          VARCHAR  -   step (a model step), profiler_step, compiled_graph or other
-- name          VARCHAR  -   name as written
-- phase         VARCHAR  -   prefill, decode, mixed, ... where a step's name tells it
-- n_context     BIGINT   -   prefill requests where the name tells
-- n_generation  BIGINT   -   decode requests where the name tells
-- pid           VARCHAR  -   pid as text
-- tid           VARCHAR  -   tid as text
-- start_ns      BIGINT   ns  start
-- end_ns        BIGINT   ns  end
with
    named as (
        select
            *,
            regexp_extract(
                name,
                '^execute_(?:\d+_)?context_(\d+)\(.*\)_generation_(\d+)\(.*\)',
                ['n_context', 'n_generation']
            ) as vllm,
            lower(regexp_extract(name, '^step\[([A-Za-z_]+)', 1)) as sglang,
            regexp_extract(name, '^(prefill|decode)\[', 1) as atom
        from events
        where cat in ('user_annotation', 'gpu_user_annotation') and ph = 'X' and ts_ns is not null
    )

select
    trace_id,
    event_id,
    if(cat = 'user_annotation', 'host', 'device') as side,
    case
        when vllm.n_context <> '' or sglang <> '' or atom <> ''
        then 'step'
        when starts_with(name, 'ProfilerStep#')
        then 'profiler_step'
        when contains(name, 'CompiledFxGraph')
        then 'compiled_graph'
        else 'other'
    end as kind,
    name,
    case
        when vllm.n_context <> ''
        then
            case
                when vllm.n_context <> '0' and vllm.n_generation <> '0'
                then 'mixed'
                when vllm.n_context <> '0'
                then 'prefill'
                when vllm.n_generation <> '0'
                then 'decode'
            end
        when sglang in ('extend', 'prefill')
        then 'prefill'
        when sglang <> ''
        then sglang
        when atom <> ''
        then atom
    end as phase,
    try_cast(vllm.n_context as bigint) as n_context,
    try_cast(vllm.n_generation as bigint) as n_generation,
    pid,
    tid,
    ts_ns as start_ns,
    ts_ns + greatest(coalesce(dur_ns, 0), 0) as end_ns
from named
