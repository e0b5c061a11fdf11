-- One row a forward pass, as a report shows it. Times count from what the Perfetto UI shows as
-- zero.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id               VARCHAR  -   the trace
-- pass_no                BIGINT   -   0-based pass
-- start_s                DOUBLE   s   first start
-- end_s                  DOUBLE   s   last end
-- duration_ms            DOUBLE   ms  last end minus first start
-- busy_ms                DOUBLE   ms  union of the activities' intervals
-- avg_layer_ms           DOUBLE   ms  mean wall of complete layers
-- first_layer_ms         DOUBLE   ms  wall of layer 0 where it is complete
-- kind                   VARCHAR  -   target, draft or mtp; NULL where it is refused
-- kind_source            VARCHAR  -   annotation or layer count; NULL where nothing tells
-- phase                  VARCHAR  -   prefill, decode, mixed, verify, ...; NULL when unknown
-- phase_source           VARCHAR  -   annotation, file name, kernels or layer count
-- label                  VARCHAR  -   kind and phase in as few words as tell them
-- batch_size             BIGINT   -   requests; NULL where no annotation tells
-- n_tokens               BIGINT   -   tokens; NULL where no annotation tells
-- n_context_requests     BIGINT   -   requests in prefill
-- n_context_tokens       BIGINT   -   their tokens
-- n_generation_requests  BIGINT   -   requests that generate
-- n_generation_tokens    BIGINT   -   their tokens
-- notes                  VARCHAR  -   what to know: cut, refused, cold start, steady, ...
-- depth                  BIGINT   -   loops over the core of a looped model; 1 for others
-- evidence               VARCHAR  -   what speaks for the split
with
    firsts as (
        select
            c.trace_id,
            c.kind,
            c.phase,
            min(c.pass_no) as pass_no,
            count(*) as n_passes,
            -- Behind a pass that is cut, or a chosen begin, the first one seen is not the first.
            min(c.pass_no) < coalesce(min(o.pass_no), min(c.pass_no) + 1)
            and any_value(s.from_ns) is null as starts
        from pass_changes as c
        join trace_settings as s using (trace_id)
        left join
            (
                select trace_id, min(pass_no) as pass_no
                from passes
                where status <> 'complete'
                group by trace_id
            ) as o using (trace_id)
        group by c.trace_id, c.kind, c.phase
    ),

    seen as (
        select trace_id, pass_no, min(layer_no) as first_layer, max(layer_no) as last_layer
        from layers
        group by trace_id, pass_no
    )

select
    p.trace_id,
    p.pass_no,
    (p.start_ns - t.min_ts_ns) / 1e9 as start_s,
    (p.end_ns - t.min_ts_ns) / 1e9 as end_s,
    p.wall_ns / 1e6 as duration_ms,
    p.busy_ns / 1e6 as busy_ms,
    p.avg_layer_ns / 1e6 as avg_layer_ms,
    p.first_layer_ns / 1e6 as first_layer_ms,
    k.kind,
    k.kind_source,
    k.phase,
    k.phase_source,
    k.label,
    k.batch_size,
    k.n_tokens,
    k.n_context_requests,
    k.n_context_tokens,
    k.n_generation_requests,
    k.n_generation_tokens,
    concat_ws(
        '; ',
        case
            when p.status = 'refused'
            then 'refused: ' || p.evidence
            when p.status = 'cut_start'
            then 'cut at the start: layers ' || s.first_layer || '-' || s.last_layer
            when p.status = 'cut_end'
            then 'cut at the end: layers ' || s.first_layer || '-' || s.last_layer
            when not p.complete
            then 'all layers; its begin is not in the trace'
        end,
        case
            when f.n_passes = 1 and f.pass_no = p.pass_no and p.complete
            then concat_ws(' ', 'only complete', k.label, 'pass')
            when f.n_passes > 1 and f.pass_no = p.pass_no
            then concat_ws(' ', 'first', k.label, 'pass', if(f.starts, '(cold start)', null))
            when c.change_pct is not null
            then printf('layer 0 %+.1f %%', c.change_pct)
        end,
        if(y.pass_no = p.pass_no, 'steady from here', null),
        if(
            w.depth is not null and k.kind = 'target',
            p.depth || if(p.depth < w.depth, ' of ' || w.depth, '') || ' loops',
            null
        ),
        if(k.n_prior_tokens > 0, k.n_prior_tokens || ' prompt tokens from before', null)
    ) as notes,
    p.depth,
    p.evidence
from passes as p
join raw_facts as t using (trace_id)
join trace_settings as w using (trace_id)
join pass_phases as k using (trace_id, pass_no)
left join seen as s using (trace_id, pass_no)
left join pass_changes as c using (trace_id, pass_no)
left join firsts as f on f.trace_id = p.trace_id and f.kind = c.kind and f.phase = c.phase
left join steady_passes as y on y.trace_id = p.trace_id and y.kind = c.kind and y.phase = c.phase
