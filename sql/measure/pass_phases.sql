-- One row a pass: its kind, its phase and its load, and how they are known. Of the annotations
-- around its launch only those speak for it that speak of its kind. Then come the file's name, and
-- kernels that only one phase runs.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id               VARCHAR  -  the trace
-- pass_no                BIGINT   -  the pass
-- kind                   VARCHAR  -  target, draft or mtp; NULL where it is refused
-- kind_source            VARCHAR  -  annotation or layer count; NULL where nothing tells
-- phase                  VARCHAR  -  prefill, decode, mixed, verify, draft, ...; NULL when unknown
-- phase_source           VARCHAR  -  annotation, file name, kernels or layer count
-- label                  VARCHAR  -  kind and phase in as few words as tell them
-- step_name              VARCHAR  -  name of the outermost step annotation around its launch
-- batch_size             BIGINT   -  requests, padding not counted; this and all below as told
-- n_tokens               BIGINT   -  tokens
-- n_context_requests     BIGINT   -  requests in prefill
-- n_context_tokens       BIGINT   -  their tokens
-- n_prior_tokens         BIGINT   -  tokens of their prompts computed before: chunks or cache
-- n_generation_requests  BIGINT   -  requests that generate
-- n_generation_tokens    BIGINT   -  their tokens; more than requests when drafts are verified
with
    spoken as (
        select
            a.*,
            -- Two passes of the model in one step share its load.
            k.kind = 'target'
            and count(*) over (partition by a.trace_id, a.event_id, k.kind) > 1 as divided
        from pass_annotations as a
        join pass_kinds as k using (trace_id, pass_no)
        where
            if(
                k.kind = 'target',
                coalesce(a.pass_kind, 'target') = 'target',
                a.pass_kind in ('draft', 'mtp')
            )
    ),

    told as (
        select
            trace_id,
            pass_no,
            -- Some ranges say more than others: verification is a way of decoding.
            arg_max(phase, nesting + if(phase in ('verify', 'draft_extend'), 100, 0)) as phase,
            arg_max(batch_size, nesting) filter (not divided) as batch_size,
            arg_max(n_tokens, nesting) filter (not divided) as n_tokens,
            arg_max(n_context_requests, nesting) filter (not divided) as n_context_requests,
            arg_max(n_context_tokens, nesting) filter (not divided) as n_context_tokens,
            arg_max(n_prior_tokens, nesting) filter (not divided) as n_prior_tokens,
            arg_max(n_generation_requests, nesting) filter (not divided) as n_generation_requests,
            arg_max(n_generation_tokens, nesting) filter (not divided) as n_generation_tokens
        from spoken
        group by trace_id, pass_no
    ),

    stepped as (
        select trace_id, pass_no, arg_min(name, nesting) as step_name
        from pass_annotations
        where kind = 'step'
        group by trace_id, pass_no
    ),

    sourced as (
        select
            k.*,
            t.* exclude (trace_id, pass_no, phase),
            s.step_name,
            case
                when
                    t.phase is not null and not (t.phase = 'decode' and coalesce(w.verifies, false))
                then [t.phase, 'annotation']
                when k.kind <> 'target'
                then ['draft', k.kind_source]
                when w.verifies
                then ['verify', 'kernels']
                when w.file_phase is not null
                then [w.file_phase, 'file name']
                -- Attention of either kind can verify drafts; and where annotations name the phase
                -- of other passes, they show that kernels need not.
                when w.prefills <> w.decodes and not k.drafted and a.trace_id is null
                then [if(w.prefills, 'prefill', 'decode'), 'kernels']
            end as phase
        from pass_kinds as k
        join pass_words as w using (trace_id, pass_no)
        left join told as t using (trace_id, pass_no)
        left join stepped as s using (trace_id, pass_no)
        left join
            (select distinct trace_id from told where phase is not null) as a
            on a.trace_id = k.trace_id
    )

select
    trace_id,
    pass_no,
    kind,
    kind_source,
    phase[1] as phase,
    phase[2] as phase_source,
    if(
        coalesce(kind = 'target' or starts_with(phase[1], kind), true),
        phase[1],
        kind || ' ' || phase[1]
    ) as label,
    step_name,
    batch_size,
    n_tokens,
    n_context_requests,
    n_context_tokens,
    n_prior_tokens,
    n_generation_requests,
    n_generation_tokens
from sourced
