-- One row a kernel name within a layer: the grouped summary, and what a comparison of layers joins.
-- grain: trace_id, pass_no, loop_no, layer_no, name
--
-- trace_id         VARCHAR  -    the trace
-- pass_no          BIGINT   -    0-based pass
-- loop_no          BIGINT   -    0-based visit of the layers
-- layer_no         BIGINT   -    0-based layer
-- name             VARCHAR  -    name as the profiler wrote it
-- simplified_name  VARCHAR  -    readable name
-- category         VARCHAR  -    what it does
-- n_activities     BIGINT   -    how often it runs in the layer
-- sum_dur_us       DOUBLE   us   sum of durations
-- share_pct        DOUBLE   pct  share of the layer's sum of durations
select
    trace_id,
    pass_no,
    loop_no,
    layer_no,
    name,
    any_value(simplified_name) as simplified_name,
    any_value(category) as category,
    count(*) as n_activities,
    sum(dur_ns) / 1e3 as sum_dur_us,
    100.0
    * sum(dur_ns)
    / nullif(
        sum(sum(dur_ns)) over (partition by trace_id, pass_no, loop_no, layer_no), 0
    ) as share_pct
from compute_flow
group by trace_id, pass_no, loop_no, layer_no, name
