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
-- raw_dur_ns       BIGINT   ns  duration as the file has it
-- flaw             VARCHAR  -   no_time, no_duration, negative, overrun, beside; NULL for most
-- pass_no          BIGINT   -   the pass
-- loop_no          BIGINT   -   visit of the layers
-- layer_no         BIGINT   -   the layer
-- slot             VARCHAR  -   part of the layer
-- region           VARCHAR  -   prologue, layer, epilogue or outside; NULL when unknown
-- operator         VARCHAR  -   operator that launched it, where recorded
-- input_dims       VARCHAR  -   its recorded input shapes as JSON text
-- launch_event_id  BIGINT   -   host call that launched it; NULL where it is not in the trace
-- launch_name      VARCHAR  -   its name
-- launch_delay_ns  BIGINT   ns  start minus start of the call; below 0 where clocks disagree
-- via_graph        BOOLEAN  -   launched by a graph
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
    w.raw_dur_ns,
    w.flaw,
    a.pass_no,
    a.loop_no,
    a.layer_no,
    a.slot,
    a.region,
    o.operator,
    o.input_dims,
    l.launch_event_id,
    l.launch_name,
    l.delay_ns as launch_delay_ns,
    l.via_graph
from placed_activities as a
left join kernel_categories as c using (trace_id, name)
left join activity_operators as o using (trace_id, event_id)
left join launches as l using (trace_id, event_id)
join activities as w on w.trace_id = a.trace_id and w.event_id = a.event_id
where a.kind = 'kernel'
