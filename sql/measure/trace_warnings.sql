-- One row a doubt about a trace's split that the reader of any answer must know.
-- grain: trace_id, warning
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- warning   VARCHAR  -  one sentence
with
    shown as (
        select
            trace_id,
            count(*) filter (
                layer_type_source = 'config' and contains(layer_type, 'DENSE') and has_moe
            ) as n_unexpected,
            count(*) filter (
                layer_type_source = 'config' and contains(layer_type, 'MOE') and not has_moe
            ) as n_missing,
            count(*) filter (layer_type_source = 'config' and not usual) as n_unusual,
            count(*) as n_layers
        from layer_kinds
        where complete
        group by trace_id
    ),

    doubts as (
        select
            trace_id,
            if(
                n_unexpected > 0,
                'the config says dense, but expert kernels run in '
                || n_unexpected
                || ' of '
                || n_layers
                || ' layers: is it this model''s config?',
                null
            ) as warning
        from shown
        union all
        select
            trace_id,
            if(
                n_missing > 0,
                'the config says experts, but no expert kernel is known in '
                || n_missing
                || ' of '
                || n_layers
                || ' layers: is it this model''s config?',
                null
            )
        from shown
        union all
        select
            trace_id,
            if(
                4 * n_unusual > n_layers,
                n_unusual
                || ' of '
                || n_layers
                || ' layers run another kernel order than most layers of their type: is it this'
                || ' model''s config?',
                null
            )
        from shown
        union all
        select
            trace_id,
            if(
                n_complete = 0 and n_cut > 0 and n_layers_source in ('option', 'config'),
                'no whole pass confirms '
                || n_layers
                || ' layers: layer numbers rest on the '
                || n_layers_source
                || ' alone',
                null
            )
        from verdicts
        union all
        select
            trace_id,
            if(
                n_layers_source = 'anchors' and n_complete > 0,
                'nothing told the layer count: anchors give '
                || n_layers
                || '; layers that loop, or that hold more than the rule says, would count as more:'
                || ' give --config',
                null
            )
        from verdicts
        union all
        select
            trace_id,
            if(
                n_overruns > 0,
                n_overruns
                || ' impossible durations, each past later work of its stream, count to the next start:'
                || ' the file says '
                || printf('%.3f', raw_sum_dur_ns / 1e6)
                || ' ms in all, '
                || printf('%.3f', sum_dur_ns / 1e6)
                || ' ms are counted',
                null
            )
        from trace_work
        union all
        select
            trace_id,
            if(
                n_beside > 0,
                n_beside
                || ' activities run past later work of their stream, too many for errors: they count'
                || ' whole, so sums exceed busy time',
                null
            )
        from trace_work
    )

select trace_id, warning
from doubts
where warning is not null
