-- One row a distinct range name that tells all eight sums over its requests, or numbers that
-- they follow from: those in prefill (c_) and those that generate (g_).
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as written
-- c_n       DOUBLE   -  prefill requests
-- c_sq      DOUBLE   -  sum of their query tokens
-- c_sk      DOUBLE   -  sum of their key tokens, cached and new
-- c_sqsq    DOUBLE   -  sum of squares of query tokens
-- c_sqsk    DOUBLE   -  sum of query tokens times key tokens
-- g_n       DOUBLE   -  generation requests
-- g_sq      DOUBLE   -  as c_sq
-- g_sk      DOUBLE   -  as c_sk
-- g_sqsq    DOUBLE   -  as c_sqsq
-- g_sqsk    DOUBLE   -  as c_sqsk
-- exact     BOOLEAN  -  whether nothing of it is assumed
-- note      VARCHAR  -  what is assumed
with
    names as (select distinct trace_id, name from annotations),

    vllm as (
        select
            *,
            regexp_extract(
                name,
                'execute_(?:\d+_)?context_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)'
                || '_generation_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)',
                [
                    'c_n',
                    'c_sq',
                    'c_sk',
                    'c_sqsq',
                    'c_sqsk',
                    'g_n',
                    'g_sq',
                    'g_sk',
                    'g_sqsq',
                    'g_sqsk'
                ]
            ) as told
        from names
        where contains(name, 'sqsk')
    ),

    sglang as (
        select
            trace_id,
            name,
            {% for key in ["bs", "c", "g"] %}
                try_cast(regexp_extract(name, '\b{{ key }}=(\d+)', 1) as double) as {{ key }},
            {% endfor %}
            {% for part in ["c", "g"] %}
                {% for key in ["sq", "sk", "sqsq", "sqsk"] %}
                    try_cast(
                        regexp_extract(name, '\b{{ part }}_{{ key }}=(\d+)', 1) as double
                    ) as {{ part }}_{{ key }},
                {% endfor %}
                {{ part }}_sq + {{ part }}_sk + {{ part }}_sqsq + {{ part }}_sqsk
                is not null as {{ part }}_told,
            {% endfor %}
        from names
        where starts_with(name, 'step[') and contains(name, '_sqsk=')
    )

select
    trace_id,
    name,
    {% for part in ["c", "g"] %}
        {% for key in ["n", "sq", "sk", "sqsq", "sqsk"] %}
            try_cast(told.{{ part }}_{{ key }} as double) as {{ part }}_{{ key }},
        {% endfor %}
    {% endfor %}
    true as exact,
    null::varchar as note
from vllm
where told.c_n <> ''
union all
select
    trace_id,
    name,
    {% for part, other in [("c", "g"), ("g", "c")] %}
        case
            when {{ part }}_told
            then coalesce({{ part }}, bs - if({{ other }}_told, {{ other }}, 0))
            else 0
        end as {{ part }}_n,
        {% for key in ["sq", "sk", "sqsq", "sqsk"] %}
            if({{ part }}_told, {{ part }}_{{ key }}, 0) as {{ part }}_{{ key }},
        {% endfor %}
    {% endfor %}
    true as exact,
    null as note
from sglang
where c_told or g_told
union all
select *
from atom_sums
