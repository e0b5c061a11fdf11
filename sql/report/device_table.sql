-- One row a device of a trace, in a merged file of a rank: where its time goes, in
-- milliseconds, and how much of what the file says about its work could be used.
-- grain: trace_id, pid, device
--
-- trace_id         VARCHAR  -    the trace
-- pid              VARCHAR  -    label of the device; can be NULL
-- device           BIGINT   -    the device; can be NULL
-- rank_label       VARCHAR  -    label of its rank in a merged file; NULL in others
-- n_activities     BIGINT   -    kernels, copies and fills
-- n_kernels        BIGINT   -    kernels
-- n_streams        BIGINT   -    streams they ran on
-- span_ms          DOUBLE   ms   last end minus first start
-- busy_ms          DOUBLE   ms   union of the activities' intervals
-- idle_ms          DOUBLE   ms   span without any activity
-- idle_pct         DOUBLE   pct  share of the span
-- sum_dur_ms       DOUBLE   ms   sum of durations that count
-- raw_sum_dur_ms   DOUBLE   ms   sum of durations as the file has them
-- comm_sum_ms      DOUBLE   ms   the part in communication kernels
-- fused_sum_ms     DOUBLE   ms   the part in communication kernels that also compute
-- exposed_comm_ms  DOUBLE   ms   time in communication kernels while no other kernel runs
-- n_linked         BIGINT   -    activities whose launch is in the trace
-- n_unlinked       BIGINT   -    activities whose launch is not
-- n_via_graph      BIGINT   -    activities of graph launches
-- n_before_launch  BIGINT   -    activities that start before their launch
-- n_without_time   BIGINT   -    activities without a time
-- n_without_dur    BIGINT   -    activities without a duration, or with one below 0
-- n_overruns       BIGINT   -    impossible durations, counted to the next start
-- n_repeated       BIGINT   -    rows of the file that repeat another
select
    t.trace_id,
    t.pid,
    t.device,
    t.rank_label,
    t.n_activities,
    t.n_kernels,
    t.n_streams,
    t.span_ns / 1e6 as span_ms,
    t.busy_ns / 1e6 as busy_ms,
    t.idle_ns / 1e6 as idle_ms,
    100.0 * t.idle_ns / nullif(t.span_ns, 0) as idle_pct,
    t.sum_dur_ns / 1e6 as sum_dur_ms,
    t.raw_sum_dur_ns / 1e6 as raw_sum_dur_ms,
    t.comm_sum_ns / 1e6 as comm_sum_ms,
    t.fused_sum_ns / 1e6 as fused_sum_ms,
    t.exposed_comm_ns / 1e6 as exposed_comm_ms,
    c.n_linked,
    c.n_unlinked,
    c.n_via_graph,
    c.n_before_launch,
    c.n_without_time,
    c.n_without_dur,
    c.n_overruns,
    c.n_repeated
from device_times as t
join
    device_coverage as c
    on c.trace_id = t.trace_id
    and c.pid is not distinct from t.pid
    and c.device is not distinct from t.device
