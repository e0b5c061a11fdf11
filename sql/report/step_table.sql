-- One row a step that the program marks, with the device work launched inside it, in
-- milliseconds.
-- grain: trace_id, event_id
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the outermost marker
-- step_no      BIGINT   -   0-based, in order of time
-- name         VARCHAR  -   name as written
-- marker_ms    DOUBLE   ms  length of the marker on the host
-- n_kernels    BIGINT   -   kernels launched inside it
-- n_launches   BIGINT   -   host calls that launched its work
-- n_via_graph  BIGINT   -   activities of graph launches
-- start_s      DOUBLE   s   first start, from the Perfetto UI's zero; NULL without activities
-- wall_ms      DOUBLE   ms  last end minus first start; NULL without activities
-- busy_ms      DOUBLE   ms  union of the activities' intervals
-- sum_dur_ms   DOUBLE   ms  sum of their durations
select
    s.trace_id,
    s.event_id,
    s.step_no,
    s.name,
    s.marker_ns / 1e6 as marker_ms,
    s.n_kernels,
    s.n_launches,
    s.n_via_graph,
    (s.start_ns - t.start_ns) / 1e9 as start_s,
    (s.end_ns - s.start_ns) / 1e6 as wall_ms,
    s.busy_ns / 1e6 as busy_ms,
    s.sum_dur_ns / 1e6 as sum_dur_ms
from step_times as s
join traces as t using (trace_id)
