-- One row a distinct activity name of a trace: what the kernel does, by the profile's ordered rules
-- (own rules first, then the universal ones; the first match wins).
-- grain: trace_id, name
-- keep: store
--
-- trace_id     VARCHAR  -  the trace
-- name         VARCHAR  -  name as the profiler wrote it
-- category     VARCHAR  -  category of the first rule that matches, else other
-- begins_pass  BOOLEAN  -  an embedding, or a kernel the profile says a pass begins with
-- attends      BOOLEAN  -  attention of any kind; planning it is none
with
    names as (select distinct trace_id, name from activities where name is not null),

    classes as (
        select
            trace_id,
            name,
            case
                {% for rule in category_rules %}
                    when regexp_matches(name, {{ rule.pattern | quoted }})
                    then {{ rule.name | quoted }}
                {% endfor %}
                else 'other'
            end as category
        from names
    )

select
    trace_id,
    name,
    category,
    category = 'embedding'
    {% for pattern in prologue_patterns %}
        or regexp_matches(name, {{ pattern | quoted }})
    {% endfor %} as begins_pass,
    category in ('attention', 'mla', 'linear_attention')
    and not contains(lower(name), 'metadata') as attends
from classes
