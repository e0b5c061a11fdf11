-- One row a named range of the program: record_function, step markers, profiler steps. What the
-- names of serving engines tell about a step are columns, NULL where a name does not tell it.
-- On a device a range stands once a stream that it has work on: those are copies by its
-- External id.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id               VARCHAR  -   the trace
-- event_id               BIGINT   -   the event
-- side                   VARCHAR  -   host, or device for the copy on a device track
-- kind                   VARCHAR  -   step, stage, profiler_step, compiled_graph or other
-- name                   VARCHAR  -   name as written
-- writer                 VARCHAR  -   engine that writes such names
-- pass_kind              VARCHAR  -   target, draft or mtp
-- phase                  VARCHAR  -   prefill, decode, mixed, verify, draft, draft_extend, ...
-- batch_size             BIGINT   -   requests, padding not counted
-- n_tokens               BIGINT   -   tokens
-- n_context_requests     BIGINT   -   requests in prefill
-- n_context_tokens       BIGINT   -   their tokens
-- n_prior_tokens         BIGINT   -   tokens of their prompts computed before: chunks or cache
-- n_generation_requests  BIGINT   -   requests that generate
-- n_generation_tokens    BIGINT   -   their tokens; more than requests when drafts are verified
-- pid                    VARCHAR  -   pid as text
-- tid                    VARCHAR  -   tid as text
-- start_ns               BIGINT   ns  start
-- end_ns                 BIGINT   ns  end; the start where nothing closes it
-- external_id            BIGINT   -   id that copies on device tracks share
-- copy_no                BIGINT   -   0-based among the copies of a device; 0 on the host
with
    named as (
        select *
        from timed_events
        where lower(cat) in ('user_annotation', 'gpu_user_annotation') and ts_ns is not null
    )

select
    r.trace_id,
    r.event_id,
    if(starts_with(lower(r.cat), 'gpu'), 'device', 'host') as side,
    case
        when n.is_step
        then 'step'
        when n.writer is not null
        then 'stage'
        when starts_with(r.name, 'ProfilerStep#')
        then 'profiler_step'
        when contains(r.name, 'CompiledFxGraph')
        then 'compiled_graph'
        else 'other'
    end as kind,
    r.name,
    n.writer,
    n.pass_kind,
    n.phase,
    n.batch_size,
    n.n_tokens,
    n.n_context_requests,
    n.n_context_tokens,
    n.n_prior_tokens,
    n.n_generation_requests,
    n.n_generation_tokens,
    r.pid,
    r.tid,
    r.ts_ns as start_ns,
    r.ts_ns + greatest(coalesce(r.dur_ns, 0), 0) as end_ns,
    r.external_id,
    if(
        starts_with(lower(r.cat), 'gpu') and r.external_id is not null,
        row_number() over (
            partition by r.trace_id, lower(r.cat), r.pid, r.external_id, r.name
            order by r.ts_ns, r.event_id
        )
        - 1,
        0
    ) as copy_no
from named as r
left join step_names as n using (trace_id, name)
