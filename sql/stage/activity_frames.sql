-- One row an activity launched inside the python frame of a layer module.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- event_id     BIGINT   -  the activity
-- source       VARCHAR  -  launch or capture
-- class        VARCHAR  -  class of the layer module
-- frame_index  BIGINT   -  number of the instance
select o.trace_id, o.event_id, o.source, f.class, f.frame_index
from activity_origins as o
asof join
    layer_frames as f
    on f.trace_id = o.host_trace_id
    and f.pid = o.pid
    and f.tid = o.tid
    and f.start_ns <= o.launch_ns
where o.launch_ns < f.end_ns
