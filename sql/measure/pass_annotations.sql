-- One row a pass and an annotation of a serving engine around its launch, which is the only tie
-- between them: on the device a pass can run long after its annotation has ended. The launch in
-- the middle of the pass's layers stands for all.
-- grain: trace_id, pass_no, event_id
-- keep: yes
--
-- trace_id               VARCHAR  -  the trace
-- pass_no                BIGINT   -  the pass
-- event_id               BIGINT   -  the annotation
-- nesting                BIGINT   -  0-based, from the outermost one around the launch
-- kind                   VARCHAR  -  step or stage
-- name                   VARCHAR  -  name as written
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
    middles as (
        select a.trace_id, a.pass_no, quantile_disc(l.launch_event_id, 0.5) as launch_event_id
        from placed_activities as a
        join launches as l using (trace_id, event_id)
        where a.region = 'layer'
        group by a.trace_id, a.pass_no
    ),

    -- Ranges of one engine and kind do not hold each other, so the last that has begun is the one.
    sought as (
        select distinct m.trace_id, m.pass_no, l.pid, l.tid, l.launch_ns, w.writer, w.kind
        from middles as m
        join launches as l using (trace_id, launch_event_id)
        join
            (
                select distinct trace_id, pid, tid, writer, kind
                from annotations
                where side = 'host' and writer is not null
            ) as w using (trace_id, pid, tid)
    ),

    begun as (from annotations where side = 'host' and writer is not null)

select
    s.trace_id,
    s.pass_no,
    a.event_id,
    row_number() over (
        partition by s.trace_id, s.pass_no order by a.start_ns, a.end_ns desc, a.event_id
    )
    - 1 as nesting,
    a.kind,
    a.name,
    a.pass_kind,
    a.phase,
    a.batch_size,
    a.n_tokens,
    a.n_context_requests,
    a.n_context_tokens,
    a.n_prior_tokens,
    a.n_generation_requests,
    a.n_generation_tokens
from sought as s
asof join
    begun as a
    on a.trace_id = s.trace_id
    and a.pid = s.pid
    and a.tid = s.tid
    and a.writer = s.writer
    and a.kind = s.kind
    and a.start_ns <= s.launch_ns
where s.launch_ns < a.end_ns
