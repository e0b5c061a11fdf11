-- One row a match of a boundary pattern on a distinct activity name.
-- grain: name, rule_key, role, position
-- keep: yes
--
-- name      VARCHAR  -  name as the profiler wrote it
-- rule_key  INTEGER  -  the boundary rule (boundary_rules)
-- role      VARCHAR  -  entry, anchor, exit or lead_in
-- position  INTEGER  -  for lead_in: how many kernels before the anchor; else 0
with
    names as (select distinct name from activities where name is not null),

    matches as (
        select
            name,
            unnest(
                list_filter(
                    [
                        {% for p in boundary_patterns %}
                            case
                                when regexp_matches(name, {{ p.pattern | quoted }})
                                then
                                    {
                                        'rule_key':{{ p.rule_key }},
                                        'role':{{ p.role | quoted }},
                                        'position':{{ p.position }}
                                    }
                            end,
                        {% endfor %}
                        null
                    ],
                    lambda x:x is not null
                )
            ) as hit
        from names
    )

select
    name,
    cast(hit.rule_key as integer) as rule_key,
    cast(hit.role as varchar) as role,
    cast(hit.position as integer) as position
from matches
