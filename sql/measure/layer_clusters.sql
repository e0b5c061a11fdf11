-- One row a layer type of a pass, over its complete layers.
-- grain: trace_id, pass_no, layer_type
--
-- trace_id        VARCHAR    -   the trace
-- pass_no         BIGINT     -   the pass
-- layer_type      VARCHAR    -   the type
-- roles           VARCHAR[]  -   parts of the type, from the config; else NULL
-- n_layers        BIGINT     -   visits of complete layers of the type
-- avg_wall_ns     DOUBLE     ns  mean wall
-- avg_busy_ns     DOUBLE     ns  mean busy
-- avg_sum_dur_ns  DOUBLE     ns  mean sum of durations
-- sum_wall_ns     BIGINT     ns  wall of all of them
-- layers          BIGINT[]   -   their numbers
select
    trace_id,
    pass_no,
    layer_type,
    any_value(roles) as roles,
    count(*) as n_layers,
    avg(wall_ns) as avg_wall_ns,
    avg(busy_ns) as avg_busy_ns,
    avg(sum_dur_ns) as avg_sum_dur_ns,
    cast(sum(wall_ns) as bigint) as sum_wall_ns,
    list(layer_no order by loop_no, layer_no) as layers
from layers
where complete
group by trace_id, pass_no, layer_type
