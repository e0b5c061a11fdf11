-- One row a layer count that a trace may have, with where it comes from: told (config or
-- option), else the numbered layer modules in its frames, else what complete stretches of
-- anchors give by a rule's formula.
-- grain: trace_id, n_layers
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- n_layers  BIGINT   -  the layer count
-- source    VARCHAR  -  option, config, frames or anchors
with
    told as (
        select trace_id, num_layers as n_layers, num_layers_source as source
        from trace_settings
        where num_layers is not null
    ),

    framed as (
        select trace_id, count(distinct frame_index) as n_layers, 'frames' as source
        from activity_frames
        group by trace_id
    ),

    counted as (
        select distinct
            c.trace_id,
            divide(c.n_hits - r.hits_extra, r.hits_per_layer) as n_layers,
            'anchors' as source
        from range_counts as c
        join pass_ranges as p using (trace_id, method, range_no)
        join boundary_rules as r using (rule_key)
        where
            p.opened
            and c.closed
            and not c.inner_mark
            and c.n_hits > r.hits_extra
            and (c.n_hits - r.hits_extra) % r.hits_per_layer = 0
            and (not r.has_entry or c.n_entries = 1 or (r.entry_ambiguous and c.n_entries > 0))
    ),

    guessed as (
        select *
        from framed
        union all
        select *
        from counted
    )

select trace_id, n_layers, min(source) as source
from told
group by trace_id, n_layers
union all
select g.trace_id, g.n_layers, max(g.source) as source
from guessed as g
where g.trace_id not in (select trace_id from told)
group by g.trace_id, g.n_layers
