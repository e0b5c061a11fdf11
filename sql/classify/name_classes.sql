-- One row a distinct activity name under a profile: what the kernel does, by the profile's ordered
-- rules (own rules first, then the universal ones; the first match wins).
-- grain: profile, name
-- keep: yes
--
-- profile          VARCHAR  -  profile whose rules were used
-- name             VARCHAR  -  name as the profiler wrote it
-- category         VARCHAR  -  category of the first rule that matches, else other
-- simplified_name  VARCHAR  -  readable name: demangled, template noise cut
-- begins_pass      BOOLEAN  -  an embedding, or a kernel the profile says a pass begins with
with
    names as (
        select distinct s.profile, a.name
        from activities as a
        join trace_settings as s using (trace_id)
        where a.name is not null
    ),

    classes as (
        select
            profile,
            name,
            case
                {% for rule in category_rules %}
                    when regexp_matches(name, {{ rule.pattern | quoted }})
                    then {{ rule.name | quoted }}
                {% endfor %}
                else 'other'
            end as category,
            {{ simplified_name }} as simplified_name
        from names
    )

select
    profile,
    name,
    category,
    simplified_name,
    category = 'embedding'
    {% for pattern in prologue_patterns %}
        or regexp_matches(name, {{ pattern | quoted }})
    {% endfor %} as begins_pass
from classes
