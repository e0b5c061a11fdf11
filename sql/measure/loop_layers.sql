-- One row a layer of a loop over all complete passes of a kind and phase: how long it takes there,
-- against its first visit. The weights are the same, so the times should be.
-- grain: trace_id, kind, phase, layer_no, loop_no
--
-- trace_id        VARCHAR  -    the trace
-- kind            VARCHAR  -    kind of pass
-- phase           VARCHAR  -    its phase; unknown where nothing tells
-- stack_no        BIGINT   -    0-based stack of layers that loop together
-- layer_no        BIGINT   -    0-based layer
-- loop_no         BIGINT   -    0-based visit
-- n_passes        BIGINT   -    passes that make this visit
-- median_wall_ns  BIGINT   ns   median wall; the lower one of two
-- change_pct      DOUBLE   pct  change against the median of its first visit
with
    medians as (
        select
            l.trace_id,
            p.kind,
            coalesce(p.phase, 'unknown') as phase,
            c.stack_no,
            l.layer_no,
            l.loop_no,
            count(*) as n_passes,
            quantile_disc(l.wall_ns, 0.5) as median_wall_ns
        from layers as l
        join passes as p using (trace_id, pass_no)
        join
            core_layers as c
            on c.trace_id = l.trace_id
            and c.kind = p.kind
            and c.layer_no = l.layer_no
        where p.status = 'complete' and l.complete
        group by l.trace_id, p.kind, p.phase, c.stack_no, l.layer_no, l.loop_no
    )

select
    *,
    100.0
    * (median_wall_ns - first_value(median_wall_ns) over visits)
    / nullif(first_value(median_wall_ns) over visits, 0) as change_pct
from medians
window visits as (partition by trace_id, kind, phase, layer_no order by loop_no)
