-- One row a depth that complete passes of a looped model have: how often a pass runs the core. It
-- is that of the batch: in plain batching a pass goes on while one of its requests does.
-- grain: trace_id, kind, phase, depth
--
-- trace_id   VARCHAR  -    the trace
-- kind       VARCHAR  -    kind of pass
-- phase      VARCHAR  -    its phase; unknown where nothing tells
-- depth      BIGINT   -    runs of the core
-- n_passes   BIGINT   -    passes of this depth
-- share_pct  DOUBLE   pct  their share among those of the kind and phase
select
    trace_id,
    kind,
    coalesce(phase, 'unknown') as phase,
    depth,
    count(*) as n_passes,
    100.0
    * count(*)
    / sum(count(*)) over (partition by trace_id, kind, coalesce(phase, 'unknown')) as share_pct
from passes
where status = 'complete' and (trace_id, kind) in (select (trace_id, kind) from core_layers)
group by trace_id, kind, coalesce(phase, 'unknown'), depth
