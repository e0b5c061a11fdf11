-- One row a boundary rule that matches a name of a trace: how much of it does. Where two rules fit
-- the same anchors, kernels that lead in or close tell which one was meant.
-- grain: trace_id, rule_key
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- rule_key  INTEGER  -  the rule
-- support   DOUBLE   -  part of its patterns that match a name
select
    c.trace_id, n.rule_key, count(distinct(n.role, n.position)) / any_value(r.n_patterns) as support
from name_classes as c
join name_roles as n using (name)
join boundary_rules as r using (rule_key)
group by c.trace_id, n.rule_key
