-- One row a forward pass, complete, cut by the begin or end of the trace, or refused.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- pass_no          BIGINT   -   0-based, in order of time
-- status           VARCHAR  -   complete, cut_start, cut_end or refused
-- complete         BOOLEAN  -   all of it is in the trace, from first to last activity
-- kind             VARCHAR  -   target, draft or mtp; NULL where it is refused
-- kind_source      VARCHAR  -   annotation or layer count; NULL where nothing tells
-- phase            VARCHAR  -   prefill, decode, mixed, verify, ...; NULL when unknown
-- phase_source     VARCHAR  -   annotation, file name, kernels or layer count
-- step_name        VARCHAR  -   step annotation that launched it
-- batch_size       BIGINT   -   requests; NULL where no annotation tells
-- n_tokens         BIGINT   -   tokens; NULL where no annotation tells
-- n_layers         BIGINT   -   layers of its model
-- depth            BIGINT   -   loops over the core of a looped model; 1 for others
-- n_layers_seen    BIGINT   -   layers that the trace shows, whole or in part
-- first_event_id   BIGINT   -   first activity by time
-- last_event_id    BIGINT   -   last activity by time
-- start_ns         BIGINT   ns  first start
-- end_ns           BIGINT   ns  last end
-- wall_ns          BIGINT   ns  last end minus first start
-- busy_ns          BIGINT   ns  union of the activities' intervals
-- sum_dur_ns       BIGINT   ns  sum of the activities' durations
-- layers_start_ns  BIGINT   ns  start of its first visible layer
-- layers_end_ns    BIGINT   ns  end of its last visible layer
-- avg_layer_ns     DOUBLE   ns  mean wall of complete layers
-- first_layer_ns   BIGINT   ns  wall of layer 0 where it is complete
-- n_activities     BIGINT   -   activities
-- rule             VARCHAR  -   boundary rule
-- confidence       VARCHAR  -   of the rule: golden, trace, source, words or option
-- evidence         VARCHAR  -   what speaks for the split; the reason where it is refused
-- exceptions       VARCHAR  -   layers whose kernel order differs from their type's
with
    layered as (
        select
            trace_id,
            pass_no,
            count(*) as n_layers_seen,
            min(start_ns) as layers_start_ns,
            max(end_ns) as layers_end_ns,
            avg(wall_ns) filter (complete) as avg_layer_ns,
            min(wall_ns) filter (complete and layer_no = 0 and loop_no = 0) as first_layer_ns
        from layers
        group by trace_id, pass_no
    )

select
    p.trace_id,
    p.pass_no,
    if(x.pass_no is not null, 'refused', p.status) as status,
    p.status = 'complete'
    and x.pass_no is null
    and coalesce(e.starts_whole and e.ends_whole, false) as complete,
    f.kind,
    f.kind_source,
    f.phase,
    f.phase_source,
    f.step_name,
    f.batch_size,
    f.n_tokens,
    p.n_layers,
    p.depth,
    coalesce(l.n_layers_seen, 0) as n_layers_seen,
    m.first_event_id,
    m.last_event_id,
    m.start_ns,
    m.end_ns,
    m.end_ns - m.start_ns as wall_ns,
    m.busy_ns,
    m.sum_dur_ns,
    l.layers_start_ns,
    l.layers_end_ns,
    l.avg_layer_ns,
    l.first_layer_ns,
    coalesce(m.n_activities, 0) as n_activities,
    r.rule_name as rule,
    r.confidence,
    coalesce(x.reason, v.evidence) as evidence,
    v.exceptions
from pass_windows as p
join boundary_rules as r using (rule_key)
left join refused_windows as x using (trace_id, pass_no)
left join pass_edges as e using (trace_id, pass_no)
left join pass_times as m using (trace_id, pass_no)
left join layered as l using (trace_id, pass_no)
left join pass_phases as f using (trace_id, pass_no)
left join pass_evidence as v using (trace_id, pass_no)
