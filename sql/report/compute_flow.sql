-- One row an activity of a layer, as the compute flow shows it. `rank_no` orders by duration,
-- `flow_no` by time.
-- grain: trace_id, event_id
--
-- trace_id         VARCHAR  -    the trace
-- pass_no          BIGINT   -    0-based pass
-- loop_no          BIGINT   -    0-based visit of the layers
-- layer_no         BIGINT   -    0-based layer
-- rank_no          BIGINT   -    1 for the longest activity of the layer
-- flow_no          BIGINT   -    1 for the first activity of the layer
-- slot             VARCHAR  -    part of the layer
-- category         VARCHAR  -    what it does
-- simplified_name  VARCHAR  -    readable name
-- dur_ns           BIGINT   ns   duration
-- dur_us           DOUBLE   us   duration
-- share_pct        DOUBLE   pct  share of the layer's sum of durations
-- ts_rel_ms        DOUBLE   ms   start counted from the layer's first start
-- start_s          DOUBLE   s    start counted from what the Perfetto UI shows as zero
-- input_dims       VARCHAR  -    recorded input shapes of the operator as JSON text
-- name             VARCHAR  -    name as the profiler wrote it
-- event_id         BIGINT   -    the activity
-- stream           BIGINT   -    its stream
select
    a.trace_id,
    a.pass_no,
    a.loop_no,
    a.layer_no,
    row_number() over (
        partition by a.trace_id, a.pass_no, a.loop_no, a.layer_no
        order by a.dur_ns desc, a.gpu_index
    ) as rank_no,
    row_number() over (
        partition by a.trace_id, a.pass_no, a.loop_no, a.layer_no order by a.gpu_index
    ) as flow_no,
    a.slot,
    a.category,
    c.simplified_name,
    a.dur_ns,
    a.dur_ns / 1e3 as dur_us,
    100.0 * a.dur_ns / nullif(l.sum_dur_ns, 0) as share_pct,
    (a.start_ns - l.start_ns) / 1e6 as ts_rel_ms,
    (a.start_ns - t.start_ns) / 1e9 as start_s,
    o.input_dims,
    a.name,
    a.event_id,
    a.stream
from placed_activities as a
left join kernel_categories as c using (trace_id, name)
left join activity_operators as o using (trace_id, event_id)
join layers as l using (trace_id, pass_no, loop_no, layer_no)
join traces as t using (trace_id)
