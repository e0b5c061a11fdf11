-- One row a trace: whether it could be split into passes and layers, and if not, why and what to
-- do next.
-- grain: trace_id
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- verdict          VARCHAR  -   split, empty (no device work) or refused
-- message          VARCHAR  -   NULL where split, else one sentence for a person
-- profile          VARCHAR  -   profile used
-- profile_source   VARCHAR  -   why this profile
-- n_layers         BIGINT   -   layers of a pass; NULL when unknown
-- n_layers_source  VARCHAR  -   option, config, frames or anchors
-- pass_method      VARCHAR  -   what tells passes apart: markers, graphs, steps or counts
-- n_passes         BIGINT   -   complete, cut and refused passes
-- n_complete       BIGINT   -   complete passes
-- n_cut            BIGINT   -   passes cut by the begin or end of the trace
-- n_refused        BIGINT   -   stretches of anchors that fit no reading
-- n_activities     BIGINT   -   device activities
-- n_selected       BIGINT   -   those inside the selection
-- n_in_layers      BIGINT   -   those with a layer
-- n_linked         BIGINT   -   those whose launch is in the trace
-- sum_dur_ns       BIGINT   ns  sum of durations of the selected activities
-- layers_sum_ns    BIGINT   ns  the part of it in layers
with
    hits as (
        select
            h.trace_id,
            string_agg(h.n || ' hits of ' || r.rule_name, ', ' order by h.n desc) as found,
            bool_and(r.confidence = 'words') as by_words
        from
            (
                select trace_id, rule_key, count(*) as n
                from anchor_hits
                where role = 'anchor'
                group by trace_id, rule_key
            ) as h
        join boundary_rules as r using (rule_key)
        group by h.trace_id
    ),

    pass_counts as (
        select
            trace_id,
            count(*) as n_passes,
            count(*) filter (status = 'complete') as n_complete,
            count(*) filter (status in ('cut_start', 'cut_end')) as n_cut,
            count(*) filter (status = 'refused') as n_refused,
            arg_min(evidence, pass_no) filter (status = 'refused') as first_reason
        from passes
        group by trace_id
    )

select
    s.trace_id,
    coalesce(u.verdict, if(coalesce(p.n_complete + p.n_cut, 0) > 0, 'split', 'refused')) as verdict,
    case
        when u.message is not null
        then u.message
        when p.n_complete + p.n_cut > 0
        then null
        when h.by_words
        then
            'no boundary kernel of profile '
            || s.profile
            || ' among '
            || w.n_selected
            || ' activities, and plain words bound no pass: '
            || coalesce(p.first_reason, 'no whole pass proves a layer count')
            || '; give --num-layers, or one of the kernels that `trace-sql anchors` proposes'
            || ' for --anchor-kernel'
        when p.first_reason is not null
        then
            'no pass fits: '
            || p.first_reason
            || '; say which is meant with --num-layers, --config or --anchor-kernel'
        else h.found || ', but no whole pass proves a layer count; give --num-layers or --config'
    end as message,
    s.profile,
    s.profile_source,
    v.n_layers,
    v.n_layers_source,
    v.method as pass_method,
    coalesce(p.n_passes, 0) as n_passes,
    coalesce(p.n_complete, 0) as n_complete,
    coalesce(p.n_cut, 0) as n_cut,
    coalesce(p.n_refused, 0) as n_refused,
    coalesce(w.n_activities, 0) as n_activities,
    coalesce(w.n_selected, 0) as n_selected,
    coalesce(w.n_in_layers, 0) as n_in_layers,
    coalesce(w.n_linked, 0) as n_linked,
    coalesce(w.sum_dur_ns, 0) as sum_dur_ns,
    coalesce(w.layers_sum_ns, 0) as layers_sum_ns
from trace_settings as s
left join unsplittable as u using (trace_id)
left join trace_work as w using (trace_id)
left join hits as h using (trace_id)
left join verdicts as v using (trace_id)
left join pass_counts as p using (trace_id)
