-- One row an activity that matches an entry, anchor or exit pattern of a rule tried on the trace.
-- grain: trace_id, rule_key, role, event_id
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- rule_key  INTEGER  -  the boundary rule
-- role      VARCHAR  -  entry, anchor or exit
-- event_id  BIGINT   -  the activity
with
    hits as (
        select distinct a.trace_id, r.rule_key, n.role, a.event_id, a.gpu_index
        from activities as a
        join name_roles as n on n.name = a.name and n.role <> 'lead_in'
        join trace_rules as r on r.trace_id = a.trace_id and r.rule_key = n.rule_key
        where a.selected
    )

select h.trace_id, h.rule_key, h.role, h.event_id
from hits as h
join trace_settings as t using (trace_id)
qualify
    h.role <> 'anchor'
    or row_number() over (partition by h.trace_id, h.rule_key, h.role order by h.gpu_index)
    > coalesce(t.anchor_offset, 0)
