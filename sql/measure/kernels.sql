-- One row a kernel with its place, category, launch and operator.
-- grain: trace_id, event_id
--
-- trace_id         VARCHAR  -   the trace
-- event_id         BIGINT   -   the kernel
-- gpu_index        BIGINT   -   0-based position among the trace's activities by (time, tid)
-- name             VARCHAR  -   name as the profiler wrote it
-- simplified_name  VARCHAR  -   readable name
-- category         VARCHAR  -   what it does
-- device           BIGINT   -   its device
-- stream           BIGINT   -   its stream
-- start_ns         BIGINT   ns  start
-- dur_ns           BIGINT   ns  duration
-- end_ns           BIGINT   ns  end
-- pass_no          BIGINT   -   the pass
-- loop_no          BIGINT   -   visit of the layers
-- layer_no         BIGINT   -   the layer
-- slot             VARCHAR  -   part of the layer
-- region           VARCHAR  -   prologue, layer, epilogue or outside; NULL when unknown
-- operator         VARCHAR  -   operator that launched it, where recorded
-- input_dims       VARCHAR  -   its recorded input shapes as JSON text
select
    a.trace_id,
    a.event_id,
    a.gpu_index,
    a.name,
    c.simplified_name,
    a.category,
    a.device,
    a.stream,
    a.start_ns,
    a.dur_ns,
    a.end_ns,
    a.pass_no,
    a.loop_no,
    a.layer_no,
    a.slot,
    a.region,
    o.operator,
    o.input_dims
from placed_activities as a
left join kernel_categories as c using (trace_id, name)
left join activity_operators as o using (trace_id, event_id)
where a.kind = 'kernel'
