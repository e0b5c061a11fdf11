-- One row a visit of a layer, as a report shows it; the category columns are in
-- layer_column_table.
-- grain: trace_id, pass_no, loop_no, layer_no
--
-- trace_id        VARCHAR  -   the trace
-- pass_no         BIGINT   -   0-based pass
-- loop_no         BIGINT   -   0-based visit of the layers
-- layer_no        BIGINT   -   0-based layer
-- compress_ratio  BIGINT   -   from the config; NULL where it has none
-- layer_type      VARCHAR  -   type from the config, else from its kernels
-- wall_ms         DOUBLE   ms  last end minus first start
-- busy_ms         DOUBLE   ms  union of the activities' intervals
-- sum_dur_ms      DOUBLE   ms  sum of the activities' durations
-- n_comm          BIGINT   -   communication kernels
-- n_activities    BIGINT   -   activities
-- start_s         DOUBLE   s   first start, counted from what the Perfetto UI shows as zero
-- end_s           DOUBLE   s   last end, counted likewise
-- complete        BOOLEAN  -   all of it is in the trace
select
    l.trace_id,
    l.pass_no,
    l.loop_no,
    l.layer_no,
    l.compress_ratio,
    l.layer_type,
    l.wall_ns / 1e6 as wall_ms,
    l.busy_ns / 1e6 as busy_ms,
    l.sum_dur_ns / 1e6 as sum_dur_ms,
    l.n_comm,
    l.n_activities,
    (l.start_ns - t.start_ns) / 1e9 as start_s,
    (l.end_ns - t.start_ns) / 1e9 as end_s,
    l.complete
from layers as l
join traces as t using (trace_id)
