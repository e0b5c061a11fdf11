-- One row a distinct name of an operator that computes attention or writes its cache, with where
-- its arguments stand, by the rules of profiles/attention/operators.toml.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- name            VARCHAR  -  name as written
-- family          VARCHAR  -  the first rule that matches
-- direction       VARCHAR  -  fwd or bwd
-- implementation  VARCHAR  -  flash, paged, standard, unfused, linear or cache
-- library         VARCHAR  -  whose kernels it runs, where the operator tells
-- needs           VARCHAR  -  core: a call only where a kernel of it attends
-- layout          VARCHAR  -  order of dimensions of the query
-- kv_layout       VARCHAR  -  order of dimensions of key and value, where it is another
-- causal_mask     VARCHAR  -  what its causal flag means
-- mask            VARCHAR  -  the mask where no argument tells
-- rank            BIGINT   -  2: its arguments are read; 1: it holds others or runs alone; 0: never
-- layout_flag     BIGINT   -  position of a scalar: layout 0 BNHD, 1 BHND
-- q               BIGINT   -  position of the query, as all below
-- k               BIGINT   -  key
-- v               BIGINT   -  value
-- out             BIGINT   -  output
-- bias            BIGINT   -  bias or mask
-- q_rope          BIGINT   -  rotated part of the query
-- k_rope          BIGINT   -  rotated part of the key
-- cu_q            BIGINT   -  begins of the sequences of queries
-- cu_k            BIGINT   -  begins of the sequences of keys
-- max_q           BIGINT   -  longest query
-- max_k           BIGINT   -  longest key
-- page_table      BIGINT   -  pages of each sequence
-- lengths         BIGINT   -  lengths of keys that are read
-- causal          BIGINT   -  causal flag
-- causal_else     BIGINT   -  causal flag of older versions
-- window_left     BIGINT   -  keys before a query that it sees
-- window_right    BIGINT   -  keys behind it
-- window_size     BIGINT   -  keys of a window, itself included
-- chunk           BIGINT   -  keys of a chunk
-- mask_type       BIGINT   -  1 causal from the top left, 2 from the bottom right
-- top_k_of        BIGINT   -  tensor whose last dimension is the keys chosen
-- kv_type         BIGINT   -  tensor of the type of the cache
-- h_kv_at         BIGINT   -  number of key heads
-- d_v_at          BIGINT   -  head size of the value
-- d_v             BIGINT   -  not a position: head size of the value where no tensor has it
with
    names as (select distinct trace_id, name from timed_events where is_operator(cat)),

    ruled as (
        select
            *,
            case
                {% for rule in operator_rules %}
                    when regexp_full_match(name, {{ rule.pattern | quoted }}) then {{ loop.index }}
                {% endfor %}
            end as rule_no
        from names
    ),

    rules as (
        select *
        from
            (
                values
                    {% for rule in operator_rules %}
                        ({{ loop.index }}, {{ rule.values }}){{ "," if not loop.last }}
                    {% endfor %}
            ) as listed(rule_no, {{ operator_fields | join(", ") }})
    )

select
    r.trace_id,
    r.name,
    {% for field, type in operator_fields.items() %}
        cast(l.{{ field }} as {{ type }}) as {{ field }}{{ "," if not loop.last }}
    {% endfor %}
from ruled as r
join rules as l using (rule_no)
