-- One row an operator that is a call of attention, with its tensors brought to one of the layouts
-- that `tensor_shape` knows: parts and groups of heads are one dimension, tokens of requests too.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id        VARCHAR   -  the trace that holds it
-- event_id        BIGINT    -  the operator
-- implementation  VARCHAR   -  flash, paged, standard, unfused, linear or cache
-- layout          VARCHAR   -  as its family, or a flag, says
-- kv_layout       VARCHAR   -  as its family says
-- q_layout        VARCHAR   -  of `q`
-- k_layout        VARCHAR   -  of `k` and `v`
-- is_packed       BOOLEAN   -  tokens of several requests stand in one dimension
-- q               DOUBLE[]  -  shape of the query
-- k               DOUBLE[]  -  shape of the key
-- v               DOUBLE[]  -  shape of the value
-- usual_d_v       DOUBLE    -  head size of the value, where no tensor has it
with
    laid as (
        select
            a.*,
            f.implementation,
            f.d_v::double as usual_d_v,
            f.kv_layout,
            case
                a.layout_flag when 0 then 'BNHD' when 1 then 'BHND' else f.layout
            end as order_told,
            order_told = 'TND'
            or (
                order_told in ('BNHD', 'BNGHD')
                and (
                    in_pool
                    or f.kv_layout = 'pages'
                    or (len(q_dims) = 3 and (n_seqs is not null or len(k_dims) = 4))
                    or (len(q_dims) = 4 and q_dims[1] = 1 and n_seqs > 1)
                )
            ) as is_packed,
            case
                when is_packed
                then 'TND'
                when order_told in ('BNGHD', 'BNPHD')
                then 'BNHD'
                else order_told
            end as q_layout,
            case
                when f.kv_layout = 'pool_heads' and len(k_dims) = 4 and k_dims[-1] = q_dims[-1]
                then 'pages'
                when f.kv_layout = 'pages' and len(k_dims) = 5
                then 'pool_heads'
                when f.kv_layout = 'BNPHD'
                then 'BNHD'
                when f.kv_layout is not null
                then f.kv_layout
                when is_packed and (in_pool or len(k_dims) = 4 and len(q_dims) = 3)
                then 'pages'
                else q_layout
            end as k_layout,
            'BNPHD' in (f.layout, coalesce(f.kv_layout, '')) as has_parts
        from attention_arguments as a
        join operator_texts as t using (trace_id, event_id)
        join operator_families as f on f.trace_id = a.trace_id and f.name = t.name
    ),

    -- Five dimensions are four: a part of one tensor, or groups of heads. Two are three.
    flat as (
        select
            *,
            {% for tensor in ["q", "k", "v"] %}
                case
                    when len({{ tensor }}_dims) = 5 and has_parts
                    then {{ tensor }}_dims[1:2] || {{ tensor }}_dims[4:5]
                    when len({{ tensor }}_dims) = 5 and order_told = 'BNGHD'
                    then
                        {{ tensor }}_dims[1:2]
                        || [{{ tensor }}_dims[3] * {{ tensor }}_dims[4], {{ tensor }}_dims[5]]
                    when
                        '{{ tensor }}' = 'q'
                        and len(q_dims) = 2
                        and len(k_dims) = 3
                        and q_layout = 'TND'
                    then [q_dims[1], q_dims[2] / nullif(k_dims[3], 0), k_dims[3]]
                    else {{ tensor }}_dims
                end as {{ tensor }},
            {% endfor %}
        from laid
    )

select
    trace_id,
    event_id,
    implementation,
    order_told as layout,
    kv_layout,
    q_layout,
    k_layout,
    is_packed,
    q,
    k,
    v,
    usual_d_v
from flat
