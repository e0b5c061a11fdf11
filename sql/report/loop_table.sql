-- One row a loop of a pass, as a report shows it.
-- grain: trace_id, pass_no, stack_no, loop_no
--
-- trace_id      VARCHAR  -    the trace
-- pass_no       BIGINT   -    0-based pass
-- stack_no      BIGINT   -    0-based stack of layers that loop together
-- loop_no       BIGINT   -    0-based loop
-- n_layers      BIGINT   -    layers visited
-- wall_ms       DOUBLE   ms   last end minus first start
-- busy_ms       DOUBLE   ms   union of the activities' intervals
-- sum_dur_ms    DOUBLE   ms   sum of the activities' durations
-- between_ms    DOUBLE   ms   the part of it outside layers: norm, gate or adapter of the loop
-- n_activities  BIGINT   -    activities
-- share_pct     DOUBLE   pct  share of the pass's wall
-- complete      BOOLEAN  -    all of it is in the trace
select
    trace_id,
    pass_no,
    stack_no,
    loop_no,
    n_layers,
    wall_ns / 1e6 as wall_ms,
    busy_ns / 1e6 as busy_ms,
    sum_dur_ns / 1e6 as sum_dur_ms,
    between_ns / 1e6 as between_ms,
    n_activities,
    share_pct,
    complete
from loops
