-- One row a distinct name of a range that a serving engine writes around a step of the model, or
-- around a stage that holds passes of one kind: what the name tells, NULL where it does not.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id               VARCHAR  -  the trace
-- name                   VARCHAR  -  name as written
-- writer                 VARCHAR  -  vllm, sglang, atom, tensorrt_llm or vllm_rlt
-- is_step                BOOLEAN  -  one step of the model; else a stage
-- pass_kind              VARCHAR  -  target, draft or mtp
-- phase                  VARCHAR  -  prefill, decode, mixed, verify, draft, draft_extend, ...
-- batch_size             BIGINT   -  requests, padding not counted
-- n_tokens               BIGINT   -  tokens
-- n_context_requests     BIGINT   -  requests in prefill
-- n_context_tokens       BIGINT   -  their tokens
-- n_prior_tokens         BIGINT   -  tokens of their prompts computed before: chunks or cache
-- n_generation_requests  BIGINT   -  requests that generate
-- n_generation_tokens    BIGINT   -  their tokens
with
    counted as (
        select
            *,
            case
                when c is not null
                then c
                when mode in ('extend', 'prefill', 'split_prefill')
                then bs
                when mode in ('decode', 'verify', 'target_verify')
                then coalesce(p, 0)
            end as n_context_requests,
            case
                when g is not null
                then g
                when mode in ('extend', 'prefill', 'split_prefill')
                then 0
                when mode in ('decode', 'verify', 'target_verify')
                then coalesce(d, bs)
            end as n_generation_requests
        from step_fields
    ),

    summed as (
        select
            *,
            case
                when c_sq is not null
                then c_sq
                when n_context_requests = 0
                then 0
                when n_generation_requests = 0
                then tok
            end as n_context_tokens,
            case
                when g_sq is not null
                then g_sq
                when n_generation_requests = 0
                then 0
                when n_context_requests = 0 and writer = 'atom'
                then coalesce(tok, bs)
                when mode = 'decode' and writer = 'sglang'
                then bs
            end as n_generation_tokens
        from counted
    )

select
    trace_id,
    name,
    writer,
    is_step,
    case
        when mode = 'draft_loop'
        then 'mtp'
        when starts_with(mode, 'draft')
        then 'draft'
        -- A target decodes one token a request; only a draft model decodes several.
        when writer = 'sglang' and mode = 'decode' and n_generation_tokens > bs
        then 'draft'
        -- Before it was called VERIFY, the mode was that of drafts too.
        when mode = 'verify'
        then 'target'
    end as pass_kind,
    case
        -- SGLang counts tokens only of passes that extend.
        when starts_with(mode, 'draft_extend') or (mode = 'draft' and writer = 'sglang' and tok > 0)
        then 'draft_extend'
        when pass_kind in ('draft', 'mtp')
        then 'draft'
        when mode in ('verify', 'target_verify')
        then 'verify'
        when mode in ('mixed', 'idle', 'dummy', 'prebuilt', 'dllm_extend')
        then mode
        when n_context_requests > 0 and n_generation_requests > 0
        then 'mixed'
        when n_context_requests > 0
        then 'prefill'
        when n_generation_requests > 0 and (n_generation_tokens > n_generation_requests or spec > 0)
        then 'verify'
        when n_generation_requests > 0
        then 'decode'
    end as phase,
    coalesce(bs, n_context_requests + n_generation_requests) as batch_size,
    coalesce(n_context_tokens + n_generation_tokens, tok, c_sq, g_sq) as n_tokens,
    n_context_requests,
    n_context_tokens,
    if(n_context_requests > 0, c_sk - n_context_tokens, null) as n_prior_tokens,
    n_generation_requests,
    n_generation_tokens
from summed
