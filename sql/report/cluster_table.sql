-- One row a layer type of a pass, as a report shows it, over its complete layers.
-- grain: trace_id, pass_no, layer_type
--
-- trace_id        VARCHAR   -    the trace
-- pass_no         BIGINT    -    0-based pass
-- layer_type      VARCHAR   -    the type
-- n_layers        BIGINT    -    complete layers of the type
-- avg_wall_ms     DOUBLE    ms   mean wall
-- avg_busy_ms     DOUBLE    ms   mean busy
-- avg_sum_dur_ms  DOUBLE    ms   mean sum of durations
-- wall_share_pct  DOUBLE    pct  their share of the wall of all complete layers of the pass
-- layers          BIGINT[]  -    their numbers
select
    trace_id,
    pass_no,
    layer_type,
    n_layers,
    avg_wall_ns / 1e6 as avg_wall_ms,
    avg_busy_ns / 1e6 as avg_busy_ms,
    avg_sum_dur_ns / 1e6 as avg_sum_dur_ms,
    100.0
    * sum_wall_ns
    / nullif(sum(sum_wall_ns) over (partition by trace_id, pass_no), 0) as wall_share_pct,
    layers
from layer_clusters
