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
-- region           VARCHAR  -   prologue, layer, epilogue or outside; NULL in a refused pass
-- operator         VARCHAR  -   operator that launched it, where recorded
-- input_dims       VARCHAR  -   its recorded input shapes as JSON text
select
    trace_id,
    event_id,
    gpu_index,
    name,
    simplified_name,
    category,
    device,
    stream,
    start_ns,
    dur_ns,
    end_ns,
    pass_no,
    loop_no,
    layer_no,
    slot,
    region,
    operator,
    input_dims
from placed_activities
where kind = 'kernel'
