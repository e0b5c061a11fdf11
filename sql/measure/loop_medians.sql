-- One row a loop over all complete passes of a kind and phase, compared with the other loops. Loops
-- run the same weights on the same shapes: a loop whose median is more than 5 % off that of the
-- others has another cause, such as a cold cache, another KV plane or another attention.
-- grain: trace_id, kind, phase, stack_no, loop_no
--
-- trace_id           VARCHAR  -    the trace
-- kind               VARCHAR  -    kind of pass
-- phase              VARCHAR  -    its phase; unknown where nothing tells
-- stack_no           BIGINT   -    0-based stack of layers that loop together
-- loop_no            BIGINT   -    0-based loop
-- n_passes           BIGINT   -    passes that run it
-- median_wall_ns     BIGINT   ns   median wall; the lower one of two
-- min_wall_ns        BIGINT   ns   shortest
-- max_wall_ns        BIGINT   ns   longest
-- median_busy_ns     BIGINT   ns   median of the union of its activities' intervals
-- median_sum_dur_ns  BIGINT   ns   median of the sum of their durations
-- ratio              DOUBLE   -    median against that of loop 0
-- off_pct            DOUBLE   pct  median against the median of all loops' medians
-- differs            BOOLEAN  -    that is more than 5 %
-- least_layer_no     BIGINT   -    its layer that takes least against its visit in loop 0
-- least_layer_pct    DOUBLE   pct  that change
-- most_layer_no      BIGINT   -    its layer that takes most against its visit in loop 0
-- most_layer_pct     DOUBLE   pct  that change
with
    medians as (
        select
            trace_id,
            kind,
            coalesce(phase, 'unknown') as phase,
            stack_no,
            loop_no,
            count(*) as n_passes,
            quantile_disc(wall_ns, 0.5) as median_wall_ns,
            min(wall_ns) as min_wall_ns,
            max(wall_ns) as max_wall_ns,
            quantile_disc(busy_ns, 0.5) as median_busy_ns,
            quantile_disc(sum_dur_ns, 0.5) as median_sum_dur_ns
        from loops
        where complete
        group by all
    ),

    typical as (
        select trace_id, kind, phase, stack_no, quantile_disc(median_wall_ns, 0.5) as usual_wall_ns
        from medians
        group by all
    ),

    extremes as (
        select
            trace_id,
            kind,
            phase,
            stack_no,
            loop_no,
            arg_min(layer_no, (change_pct, layer_no)) as least_layer_no,
            min(change_pct) as least_layer_pct,
            arg_max(layer_no, (change_pct, - layer_no)) as most_layer_no,
            max(change_pct) as most_layer_pct
        from loop_layers
        group by all
    )

select
    m.*,
    m.median_wall_ns / nullif(first_value(m.median_wall_ns) over visits, 0) as ratio,
    100.0 * (m.median_wall_ns - t.usual_wall_ns) / nullif(t.usual_wall_ns, 0) as off_pct,
    coalesce(100 * abs(m.median_wall_ns - t.usual_wall_ns) > 5 * t.usual_wall_ns, false) as differs,
    e.least_layer_no,
    e.least_layer_pct,
    e.most_layer_no,
    e.most_layer_pct
from medians as m
join typical as t using (trace_id, kind, phase, stack_no)
left join extremes as e using (trace_id, kind, phase, stack_no, loop_no)
window visits as (partition by m.trace_id, m.kind, m.phase, m.stack_no order by m.loop_no)
