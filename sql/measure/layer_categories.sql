-- One row a category of a visit of a layer: how long its activities take in sum.
-- grain: trace_id, pass_no, loop_no, layer_no, category
-- keep: store
--
-- trace_id      VARCHAR  -   the trace
-- pass_no       BIGINT   -   the pass
-- loop_no       BIGINT   -   visit of the layers
-- layer_no      BIGINT   -   the layer
-- category      VARCHAR  -   what the activities do
-- sum_dur_ns    BIGINT   ns  sum of durations
-- n_activities  BIGINT   -   activities
select
    trace_id,
    pass_no,
    loop_no,
    layer_no,
    category,
    cast(sum(dur_ns) as bigint) as sum_dur_ns,
    count(*) as n_activities
from placed_activities
where region = 'layer'
group by trace_id, pass_no, loop_no, layer_no, category
