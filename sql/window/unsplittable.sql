-- One row a trace that cannot be split because it has no anchors, with what to do next: it holds
-- no device work, nothing of it is selected, or no kernel matches a boundary rule. Told apart from
-- the other refusals because it is known before anything is split.
-- grain: trace_id
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- verdict   VARCHAR  -  empty (no device work) or refused
-- message   VARCHAR  -  one sentence for a person
with
    work as (
        select trace_id, count(*) as n_activities, count(*) filter (selected) as n_selected
        from activities
        group by trace_id
    ),

    devices as (
        select trace_id, count(*) as n_places, string_agg(place, ', ' order by place) as places
        from
            (
                select distinct trace_id, 'device ' || device || ' (pid ' || pid || ')' as place
                from activities
                where kind = 'kernel'
            )
        group by trace_id
    ),

    named as (
        select t.trace_id, any_value(r.rule_name) as rule_name
        from trace_rules as t
        join boundary_rules as r using (rule_key)
        where r.confidence = 'option'
        group by t.trace_id
    )

select
    s.trace_id,
    if(w.n_activities is null, 'empty', 'refused') as verdict,
    case
        when w.n_activities is null
        then 'no device activity in this trace; record it with the CUDA (or ROCm) activity on'
        when w.n_selected = 0 and d.n_places > 1 and s.device is null and s.pid is null
        then
            'kernels of several devices or ranks: '
            || d.places
            || '; choose one with --device or --pid'
        when w.n_selected = 0
        then
            'nothing is left by --device, --pid, --from and --to; kernels run on '
            || coalesce(d.places, 'no device')
        when n.rule_name is not null
        then
            'no hit of '
            || n.rule_name
            || ' among '
            || w.n_selected
            || ' activities; `trace-sql anchors` lists kernels that may bound layers'
        else
            'no boundary kernel of profile '
            || s.profile
            || ' among '
            || w.n_selected
            || ' activities; `trace-sql anchors` proposes kernels for --anchor-kernel'
    end as message
from trace_settings as s
left join work as w using (trace_id)
left join devices as d using (trace_id)
left join named as n using (trace_id)
where s.trace_id not in (select trace_id from anchor_hits where role = 'anchor')
