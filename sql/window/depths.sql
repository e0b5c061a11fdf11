-- One row a layer count that a trace may have, with a depth a pass may have: how often it runs the
-- looped core of the model. 1 without loops. The config tells it; fewer whole loops, as a stretch
-- of anchors gives them, are possible, too, because a pass may leave early. Each run may begin with
-- an entry kernel, because nothing is left to add; a norm between two is then such a kernel, too.
-- grain: trace_id, n_layers, depth, resets
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- n_layers  BIGINT   -  layer count
-- depth     BIGINT   -  runs of the core in one pass
-- resets    BOOLEAN  -  each run begins with an entry kernel
with
    parts as (
        select
            trace_id,
            count(*) filter (part = 'core') as n_cycle,
            count(*) filter (part <> 'core') as n_once,
            count(*) filter (part = 'core' and norm_behind and not last_only) as n_cycle_norms,
            count(*) filter (norm_behind and (part <> 'core' or last_only)) as n_once_norms
        from trace_visits
        group by trace_id
    ),

    -- A stretch of visits that ends with a norm has one anchor more than the blocks that anchors
    -- open; without final norms in the count, only the pass's first blocks have none.
    counts as (
        select
            c.trace_id,
            c.n_hits,
            s.resets,
            r.hits_per_layer * p.n_cycle + case
                when s.resets
                then -1
                when r.last_is = 'epilogue'
                then p.n_cycle_norms * (1 - r.first_block)
                else 0
            end as n_cycle_hits,
            r.hits_per_layer * p.n_once + case
                when s.resets
                then if(r.last_is = 'epilogue', 1, 0)
                when r.last_is = 'epilogue'
                then p.n_once_norms * (1 - r.first_block)
                else - r.first_block
            end as n_once_hits
        from range_counts as c
        join boundary_rules as r using (rule_key)
        join parts as p using (trace_id)
        join (values (false), (true)) as s(resets) on r.first_block > 0 or not s.resets
    ),

    seen as (
        select distinct trace_id, divide(n_hits - n_once_hits, n_cycle_hits) as depth, resets
        from counts
        where n_hits > n_once_hits and (n_hits - n_once_hits) % n_cycle_hits = 0
    )

select n.trace_id, n.n_layers, cast(1 as bigint) as depth, false as resets
from layer_count_candidates as n
where n.trace_id not in (select trace_id from parts) or n.source = 'draft'
union
select n.trace_id, n.n_layers, s.depth, w.resets
from layer_count_candidates as n
join trace_settings as s on s.trace_id = n.trace_id and s.num_layers = n.n_layers
join (values (false), (true)) as w(resets) on true
where s.depth is not null and s.trace_id in (select trace_id from parts)
union
select n.trace_id, n.n_layers, s.depth, s.resets
from layer_count_candidates as n
join trace_settings as t on t.trace_id = n.trace_id and t.num_layers = n.n_layers
join seen as s on s.trace_id = n.trace_id and s.depth <= coalesce(t.depth, s.depth)
