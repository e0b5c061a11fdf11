-- One row a trace with anchors: the layer count and the way of telling passes apart that explain
-- it best. Markers come before graph launches and steps; the count with the most anchors in
-- complete passes wins, but for those of a draft model that may run more often.
-- grain: trace_id
-- keep: store
--
-- trace_id         VARCHAR  -  the trace
-- n_layers         BIGINT   -  layer count
-- n_layers_source  VARCHAR  -  option, config, frames or anchors
-- method           VARCHAR  -  markers, graphs, steps or counts
-- n_complete       BIGINT   -  complete passes
-- n_cut            BIGINT   -  passes cut by the begin or end of the trace
-- n_refused        BIGINT   -  stretches that do not fit
with
    scores as (
        select
            trace_id,
            n_layers,
            method,
            count(*) filter (status = 'complete') as n_complete,
            count(*) filter (status in ('cut_start', 'cut_end')) as n_cut,
            count(*) filter (status = 'refused') as n_refused,
            coalesce(sum(n_hits) filter (status = 'complete'), 0) as n_explained,
            max(priority) as priority,
            bool_or(r.confidence = 'words') as by_words
        from range_fits
        join boundary_rules as r using (rule_key)
        where
            (trace_id, n_layers)
            in (select (trace_id, n_layers) from layer_count_candidates where source <> 'draft')
        group by trace_id, n_layers, method
    ),

    -- Four times fewer layers than another count that whole passes have; or fewer, where words
    -- bound passes, because then a head, too, tells two passes from one.
    dwarfed as (
        select distinct s.trace_id, s.n_layers, s.method
        from scores as s
        join
            scores as l
            on l.trace_id = s.trace_id
            and l.method = s.method
            and l.n_complete > 0
            and l.n_layers >= if(l.by_words, s.n_layers + 1, 4 * s.n_layers)
    )

select
    s.trace_id,
    s.n_layers,
    c.source as n_layers_source,
    s.method,
    s.n_complete,
    s.n_cut,
    s.n_refused
from scores as s
join layer_count_candidates as c using (trace_id, n_layers)
left join
    dwarfed as d on d.trace_id = s.trace_id and d.n_layers = s.n_layers and d.method = s.method
qualify
    row_number() over (
        partition by s.trace_id
        order by
            s.n_complete > 0 desc,
            s.n_complete + s.n_cut > 0 desc,
            list_position(['counts', 'markers', 'graphs', 'steps'], s.method),
            d.n_layers is not null,
            s.n_explained desc,
            s.priority,
            s.n_cut desc,
            s.n_layers desc
    )
    = 1
