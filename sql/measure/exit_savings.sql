-- One row a kind and phase of a looped model's complete passes: how deep they go, and what ending
-- before the full depth saves. Where the config gives no full depth, or passes go deeper, nothing
-- is said of savings.
-- grain: trace_id, kind, phase
--
-- trace_id    VARCHAR  -    the trace
-- kind        VARCHAR  -    kind of pass
-- phase       VARCHAR  -    its phase; unknown where nothing tells
-- n_passes    BIGINT   -    complete passes
-- n_runs      BIGINT   -    runs of the core in all of them
-- full_depth  BIGINT   -    runs of the core in a pass that does not end early, by the config
-- n_full      BIGINT   -    passes of the full depth
-- min_depth   BIGINT   -    least
-- avg_depth   DOUBLE   -    mean
-- p50_depth   BIGINT   -    median, the lower one of two
-- p90_depth   BIGINT   -    nine of ten passes go no deeper
-- max_depth   BIGINT   -    most
-- saving_pct  DOUBLE   pct  runs of the core not done, of those that full depth would take
with
    depths_seen as (
        select d.*, unnest(range(d.n_passes)) as pass_of_depth, s.depth as full_depth
        from exit_depths as d
        join trace_settings as s using (trace_id)
    ),

    summed as (
        select
            trace_id,
            kind,
            phase,
            count(*) as n_passes,
            cast(sum(depth) as bigint) as n_runs,
            any_value(full_depth) as full_depth,
            if(any_value(full_depth) is null, null, count(*) filter (depth = full_depth)) as n_full,
            min(depth) as min_depth,
            avg(depth) as avg_depth,
            quantile_disc(depth, 0.5) as p50_depth,
            quantile_disc(depth, 0.9) as p90_depth,
            max(depth) as max_depth
        from depths_seen
        group by trace_id, kind, phase
    )

select
    *,
    if(
        max_depth <= full_depth, 100.0 * (1 - n_runs / nullif(full_depth * n_passes, 0)), null
    ) as saving_pct
from summed
