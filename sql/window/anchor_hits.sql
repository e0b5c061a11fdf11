-- One row an activity that matches an entry, anchor or exit pattern of a rule tried on the trace.
-- Of rules tried only because nothing names the model, none counts whose anchors a rule of the
-- generic profile claims: the same norms, counted for another family. A rule by words counts only
-- where no other has an anchor.
-- grain: trace_id, rule_key, role, event_id
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- rule_key  INTEGER  -  the boundary rule
-- role      VARCHAR  -  entry, anchor or exit
-- event_id  BIGINT   -  the activity
with
    hits as (
        select distinct
            a.trace_id,
            r.rule_key,
            r.is_own,
            b.confidence = 'words' as by_words,
            n.role,
            a.name,
            a.event_id,
            a.gpu_index
        from activities as a
        join name_roles as n on n.name = a.name and n.role <> 'lead_in'
        join trace_rules as r on r.trace_id = a.trace_id and r.rule_key = n.rule_key
        join boundary_rules as b on b.rule_key = r.rule_key
        where a.selected
    ),

    claimed as (
        select distinct trace_id, name from hits where is_own and role <> 'exit' and not by_words
    ),

    shadowed as (
        select distinct h.trace_id, h.rule_key
        from hits as h
        semi join claimed as c using (trace_id, name)
        where not h.is_own and h.role = 'anchor'
        union
        select distinct h.trace_id, h.rule_key
        from hits as h
        semi join
            (select trace_id from hits where role = 'anchor' and not by_words) as o using (trace_id)
        where h.by_words
    )

select h.trace_id, h.rule_key, h.role, h.event_id
from hits as h
join trace_settings as t using (trace_id)
anti join shadowed as x on x.trace_id = h.trace_id and x.rule_key = h.rule_key
qualify
    h.role <> 'anchor'
    or row_number() over (partition by h.trace_id, h.rule_key, h.role order by h.gpu_index)
    > coalesce(t.anchor_offset, 0)
