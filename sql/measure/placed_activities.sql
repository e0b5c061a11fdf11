-- One row a device activity with its place and category: what the measures are taken from.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id   VARCHAR  -   the trace
-- event_id   BIGINT   -   the activity
-- gpu_index  BIGINT   -   0-based position among the trace's activities by (time, tid)
-- kind       VARCHAR  -   kernel, copy or fill
-- name       VARCHAR  -   name as the profiler wrote it
-- category   VARCHAR  -   what it does
-- device     BIGINT   -   its device
-- stream     BIGINT   -   its stream
-- start_ns   BIGINT   ns  start
-- end_ns     BIGINT   ns  end
-- dur_ns     BIGINT   ns  duration
-- pass_no    BIGINT   -   the pass
-- loop_no    BIGINT   -   visit of the layers
-- layer_no   BIGINT   -   the layer
-- slot       VARCHAR  -   part of the layer
-- region     VARCHAR  -   prologue, layer, epilogue or outside; NULL when unknown
-- selected   BOOLEAN  -   inside what the settings choose
select
    a.trace_id,
    a.event_id,
    a.gpu_index,
    a.kind,
    a.name,
    c.category,
    a.device,
    a.stream,
    a.start_ns,
    a.end_ns,
    a.dur_ns,
    l.pass_no,
    l.loop_no,
    l.layer_no,
    l.slot,
    l.region,
    a.selected
from activities as a
join activity_layers as l using (trace_id, event_id)
left join name_classes as c using (trace_id, name)
