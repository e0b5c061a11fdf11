-- One row a match of a boundary pattern on a distinct activity name.
-- grain: name, rule_key, role, position
-- keep: yes
--
-- name      VARCHAR  -  name as the profiler wrote it
-- rule_key  INTEGER  -  the boundary rule (boundary_rules)
-- role      VARCHAR  -  entry, anchor, exit or lead_in
-- position  INTEGER  -  for lead_in: how many kernels before the anchor; else 0
with
    -- The same names as in activities, which need not be made first.
    names as (select distinct name from device_events where name is not null),

    -- Compiling the patterns is nearly all of the work: each is tried once, whoever names it.
    matches as (
        select
            name,
            unnest(
                [
                    {% for pattern in boundary_patterns %}
                        regexp_matches(name, {{ pattern | quoted }}),
                    {% endfor %}
                    false
                ]
            ) as matched,
            unnest(range({{ boundary_patterns | length + 1 }})) as pattern_no
        from names
    )

select m.name, p.rule_key, p.role, p.position
from matches as m
join boundary_patterns as p using (pattern_no)
where m.matched
