-- One row a distinct name of a kernel, with its rule of profiles/attention/kernels.toml, or what
-- its category makes of it, and the words in the name that tell more.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- name            VARCHAR  -  name as the profiler wrote it
-- role            VARCHAR  -  what it does; none, or NULL, where it is no attention
-- implementation  VARCHAR  -  flash, paged or linear
-- library         VARCHAR  -  whose kernel it is
-- direction       VARCHAR  -  fwd or bwd
-- phase           VARCHAR  -  prefill or decode
-- rule            VARCHAR  -  the rule; NULL where only the category tells
-- mask            VARCHAR  -  the mask of all kernels of the rule
-- place           VARCHAR  -  before or after the kernel that attends, where it does not itself
-- latent          BOOLEAN  -  key and value are one compressed tensor
-- q_heads_at      BIGINT   -  dimension of the launch grid that counts query heads, from 1
-- kv_heads_at     BIGINT   -  the one of key and value heads
-- seqs_at         BIGINT   -  the one of sequences
-- words           MAP(VARCHAR, VARCHAR)  -  what else the name tells; empty or NULL: nothing
with
    ruled as (
        select
            trace_id,
            name,
            category,
            case
                {% for rule in kernel_rules %}
                    when regexp_matches(name, {{ rule.pattern | quoted }}) then {{ loop.index }}
                {% endfor %}
                else 0
            end as rule_no
        from name_classes
    ),

    rules as (
        select *
        from
            (
                values
                    {% for rule in kernel_rules %}
                        ({{ loop.index }}, {{ rule.values }}){{ "," if not loop.last }}
                    {% endfor %}
            ) as listed(rule_no, {{ kernel_fields | join(", ") }})
    )

select
    r.trace_id,
    r.name,
    coalesce(
        l.role,
        case
            when r.category in ('attention', 'mla', 'linear_attention')
            then 'core'
            when r.category = 'kv_cache'
            then 'kv_write'
            when r.category = 'indexer'
            then 'indexer'
        end
    ) as role,
    coalesce(
        l.implementation, if(r.category = 'linear_attention', 'linear', null)
    ) as implementation,
    l.library,
    coalesce(
        l.direction,
        case
            when role <> 'core'
            then null
            when regexp_matches(r.name, '(?i)bwd|backward')
            then 'bwd'
            else 'fwd'
        end
    ) as direction,
    l.phase,
    l.rule,
    l.mask,
    coalesce(l.place, if(role = 'combine', 'after', null)) as place,
    l.latent,
    cast(l.q_heads_at as bigint) as q_heads_at,
    cast(l.kv_heads_at as bigint) as kv_heads_at,
    cast(l.seqs_at as bigint) as seqs_at,
    map{
        {% for trait in kernel_traits %}
            '{{ trait }}':
            case
                rule_no
                {% for rule in kernel_rules %}
                    {% if trait in rule.traits %}
                        when {{ loop.index }}
                        then
                            regexp_extract(
                                r.name, {{ rule.fields.traits | quoted }}, {{ rule.traits[trait] }}
                            )
                    {% endif %}
                {% endfor %}
            end
            {{- "," if not loop.last }}
        {% endfor %}
    } as words
from ruled as r
left join rules as l using (rule_no)
