-- One row a pass: the layer count that its anchors would fit, all else equal. One more layer brings
-- its anchors once, or once a loop; the loops themselves may cost an anchor each.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- is_loop   BOOLEAN  -  of a looped model
-- nearest   VARCHAR  -  the layer count in words
with
    looped as (
        select trace_id, max(loops) as loops from trace_visits where part = 'core' group by trace_id
    ),

    counts as (
        select
            p.*,
            l.trace_id is not null as is_loop,
            r.hits_per_layer * coalesce(p.depth * l.loops, 1) as per_layer,
            p.n_hits - p.n_expected as residue,
            if(l.trace_id is null, 0, r.first_block * (p.depth - 1)) as resets_residue
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        left join looped as l using (trace_id)
    )

select
    trace_id,
    pass_no,
    is_loop,
    case
        when residue % per_layer = 0 and n_layers + divide(residue, per_layer) > 0
        then
            'they would fit N='
            || (n_layers + divide(residue, per_layer))
            || if(
                not is_loop and n_hits > n_expected and n_hits % n_expected = 0,
                ', or this N in '
                || divide(n_hits, n_expected)
                || ' loops of a config that says so',
                ''
            )
        when not is_loop and n_hits > n_expected and n_hits % n_expected = 0
        then
            'they would fit this N in '
            || divide(n_hits, n_expected)
            || ' loops: give the config that says so'
        when (residue + resets_residue) % per_layer = 0
        then 'they would fit N=' || (n_layers + divide(residue + resets_residue, per_layer))
        when is_loop
        then 'they fit no whole number of layers or loops'
        else 'they fit no whole layer count'
    end as nearest
from counts
