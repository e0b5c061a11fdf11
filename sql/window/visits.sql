-- One row a visit of a layer in a whole pass, in order: the layers of the config once, or as a
-- looped model runs them.
-- grain: trace_id, n_layers, depth, visit_no
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- n_layers     BIGINT   -  layer count
-- depth        BIGINT   -  runs of the core
-- visit_no     BIGINT   -  0-based position in the pass
-- layer_no     BIGINT   -  0-based layer of the config
-- loop_no      BIGINT   -  0-based visit of that layer in the pass
-- norm_behind  BOOLEAN  -  a final norm runs behind it
-- norm_before  BOOLEAN  -  the pass begins with it, or a final norm runs before it
-- opens_run    BOOLEAN  -  the pass or a run of the core begins with it
-- is_last      BOOLEAN  -  the pass ends with it
with
    shapes as (select distinct trace_id, n_layers, depth from depths),

    looped_shapes as (
        select d.*
        from shapes as d
        join trace_settings as s on s.trace_id = d.trace_id and s.num_layers = d.n_layers
        semi join trace_visits as v on v.trace_id = d.trace_id
    ),

    counted as (
        select trace_id, n_layers, depth, unnest(range(n_layers)) as visit_no
        from shapes
        anti join looped_shapes using (trace_id, n_layers, depth)
    ),

    unrolled as (
        select
            d.trace_id,
            d.n_layers,
            d.depth,
            v.* exclude(trace_id),
            unnest(range(if(v.part = 'core', d.depth, 1))) as cycle
        from looped_shapes as d
        join trace_visits as v using (trace_id)
    ),

    looped as (
        select
            *,
            row_number() over (
                partition by trace_id, n_layers, depth
                order by list_position(['prelude', 'core', 'coda'], part), cycle, position
            )
            - 1 as visit_no
        from unrolled
    ),

    ordered as (
        select
            trace_id,
            n_layers,
            depth,
            visit_no,
            visit_no as layer_no,
            cast(0 as bigint) as loop_no,
            visit_no = n_layers - 1 as norm_behind,
            visit_no = 0 as opens_run
        from counted
        union all
        select
            trace_id,
            n_layers,
            depth,
            visit_no,
            layer_no,
            loop_no + cycle * loops as loop_no,
            norm_behind and (not last_only or cycle = depth - 1) as norm_behind,
            visit_no = 0 or (part = 'core' and position = 0) as opens_run
        from looped
    )

select
    trace_id,
    n_layers,
    depth,
    visit_no,
    layer_no,
    loop_no,
    norm_behind,
    lag(norm_behind, 1, true) over in_pass as norm_before,
    opens_run,
    lead(false, 1, true) over in_pass as is_last
from ordered
window in_pass as (partition by trace_id, n_layers, depth order by visit_no)
