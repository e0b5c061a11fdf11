-- One row a distinct name of a range that a serving engine writes: its numbers, as they stand in
-- it. vLLM writes `execute_context_2(64)_generation_0(0)`, SGLang `step[EXTEND bs=2 toks=64]`, ATOM
-- `prefill[bs=2 tok=64 ctx=[40, 24]]`, TensorRT-LLM `[Executor] _forward_step 7: 2 ctx reqs, ...`.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as written
-- writer    VARCHAR  -  vllm, sglang, atom, tensorrt_llm or vllm_rlt
-- is_step   BOOLEAN  -  one step of the model; else a stage that holds passes of one kind
-- mode      VARCHAR  -  the word for the kind of step, in SGLang's words
-- bs        BIGINT   -  requests, padding not counted
-- tok       BIGINT   -  tokens
-- c         BIGINT   -  prefill requests
-- c_sq      BIGINT   -  their tokens
-- c_sk      BIGINT   -  their tokens and those that their caches hold already
-- g         BIGINT   -  generation requests
-- g_sq      BIGINT   -  their tokens
-- p         BIGINT   -  prefill requests of a step that mostly decodes
-- d         BIGINT   -  its generation requests
-- spec      BIGINT   -  drafted tokens a request
with
    names as (
        select distinct trace_id, name
        from events
        where cat in ('user_annotation', 'gpu_user_annotation') and ph = 'X'
    ),

    read as (
        select
            *,
            regexp_extract(
                name,
                '^execute_(?:\d+_)?context_(\d+)\((?:sq)?(\d+)(?:sk(\d+))?[^)]*\)'
                || '_generation_(\d+)\((?:sq)?(\d+)',
                ['c', 'c_sq', 'c_sk', 'g', 'g_sq']
            ) as vllm,
            regexp_extract(
                name,
                '^\[Executor\] _forward_step(?: \d+)?: (\d+) ctx reqs(?:, (\d+) ctx tokens)?'
                || ', (\d+) gen reqs',
                ['c', 'c_sq', 'g']
            ) as trt,
            -- Earlier vLLM counted requests by whether they had run before, which is no phase.
            regexp_extract(name, '^execute_new_(\d+)_cached_(\d+)', ['c', 'g']) as old_vllm,
            lower(regexp_extract(name, '^step\[([A-Za-z_]+)', 1)) as sglang,
            regexp_extract(
                name,
                '^(dummy_)?(?:eager_)?(prefill|decode|draft)\[(?:\d+/\d+ )?bs=',
                ['dummy', 'mode']
            ) as atom,
            regexp_extract(name, '^spec\.(draft|verify)\.core\.d\d+$', 1) as rlt
        from names
    ),

    worded as (
        select
            *,
            case
                when vllm.c <> '' or old_vllm.c <> ''
                then 'vllm'
                when sglang <> ''
                then 'sglang'
                when atom.mode <> ''
                then 'atom'
                when trt.c <> ''
                then 'tensorrt_llm'
            end as step_writer,
            case
                when name in ('gpu_model_runner: draft', 'Draft')
                then 'vllm'
                when name in ('draft', 'draft_extend', 'verify')
                then 'sglang'
                when rlt <> ''
                then 'vllm_rlt'
            end as stage_writer
        from read
    )

select
    trace_id,
    name,
    coalesce(step_writer, stage_writer) as writer,
    step_writer is not null as is_step,
    case
        when stage_writer is not null
        then if(stage_writer = 'vllm', 'draft', coalesce(nullif(rlt, ''), name))
        when sglang <> ''
        then sglang
        when atom.dummy <> ''
        then 'dummy'
        when atom.mode <> ''
        then atom.mode
    end as mode,
    try_cast(regexp_extract(name, '\b(?:raw_)?bs=(\d+)', 1) as bigint) as bs,
    try_cast(regexp_extract(name, '\btoks?=(\d+)', 1) as bigint) as tok,
    -- Only one of the names' forms can match.
    try_cast(concat(vllm.c, trt.c, regexp_extract(name, '\bc=(\d+)', 1)) as bigint) as c,
    try_cast(
        concat(vllm.c_sq, trt.c_sq, regexp_extract(name, '\bc_sq=(\d+)', 1)) as bigint
    ) as c_sq,
    try_cast(concat(vllm.c_sk, regexp_extract(name, '\b(?:c_)?sk=(\d+)', 1)) as bigint) as c_sk,
    try_cast(concat(vllm.g, trt.g, regexp_extract(name, '\bg=(\d+)', 1)) as bigint) as g,
    try_cast(concat(vllm.g_sq, regexp_extract(name, '\bg_sq=(\d+)', 1)) as bigint) as g_sq,
    try_cast(regexp_extract(name, '\bp=(\d+)', 1) as bigint) as p,
    try_cast(regexp_extract(name, '\bd=(\d+)', 1) as bigint) as d,
    try_cast(regexp_extract(name, '\bspec=(\d+)', 1) as bigint) as spec
from worded
where step_writer is not null or stage_writer is not null
