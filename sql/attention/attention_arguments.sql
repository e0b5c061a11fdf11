-- One row an operator that is a call of attention, with its arguments read. What does not stand
-- where the rule of its family says is NULL. Text of a trace is parsed as JSON or as a number.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id         VARCHAR   -  the trace that holds it
-- event_id         BIGINT    -  the operator
-- q_dims           DOUBLE[]  -  shape of the query
-- k_dims           DOUBLE[]  -  shape of the key
-- v_dims           DOUBLE[]  -  shape of the value
-- out_dims         DOUBLE[]  -  shape of the output
-- bias_dims        DOUBLE[]  -  shape of a bias or mask
-- q_rope_dims      DOUBLE[]  -  shape of a rotated part of the query that is apart
-- k_rope_dims      DOUBLE[]  -  shape of a rotated part of the key that is apart
-- top_k_of_dims    DOUBLE[]  -  shape of the chosen keys of sparse attention
-- k_strides        DOUBLE[]  -  strides of the key
-- bias_strides     DOUBLE[]  -  strides of the bias
-- q_dtype          VARCHAR   -  type of the query
-- kv_dtype         VARCHAR   -  type of key and value, or of their cache
-- out_dtype        VARCHAR   -  type of the output
-- bias_dtype       VARCHAR   -  type of the bias
-- n_seqs           DOUBLE    -  sequences of packed lengths
-- max_q            DOUBLE    -  longest query told
-- max_kv           DOUBLE    -  longest key told
-- is_causal        BOOLEAN   -  causal flag; NULL when not told
-- mask_type        BIGINT    -  1 causal from the top left, 2 from the bottom right
-- before           DOUBLE    -  keys before a query that a window has; NULL without one
-- behind           DOUBLE    -  keys behind it
-- chunk            DOUBLE    -  keys of a chunk; 0 without chunks
-- in_pool          BOOLEAN   -  key and value are a pool of which a part is read
-- layout_flag      BIGINT    -  0: tokens before heads; 1: heads before tokens
-- h_kv             DOUBLE    -  key heads told by a number
-- d_v              DOUBLE    -  head size of the value told by a number
{% set tensors = ["q", "k", "v", "out", "bias", "q_rope", "k_rope", "top_k_of"] %}
with
    told as (
        select
            o.trace_id,
            o.event_id,
            o.input_dims::json as dims,
            o.input_types::json as types,
            o.input_strides::json as strides,
            o.concrete_inputs::json as scalars,
            {% for tensor in tensors + ["cu_q", "page_table", "lengths"] %}
                try_cast(
                    json_extract(dims, '$[' || f.{{ tensor }} || ']') as double[]
                ) as {{ tensor }}_dims,
            {% endfor %}
            {% for tensor in ["k", "bias"] %}
                try_cast(
                    json_extract(strides, '$[' || f.{{ tensor }} || ']') as double[]
                ) as {{ tensor }}_strides,
            {% endfor %}
            {% for number in [
                "max_q",
                "max_k",
                "window_left",
                "window_right",
                "window_size",
                "chunk",
                "mask_type",
                "layout_flag",
                "h_kv_at",
                "d_v_at",
            ] %}
                try_cast(
                    json_extract_string(scalars, '$[' || f.{{ number }} || ']') as double
                ) as {{ number }},
            {% endfor %}
            {% for flag in ["causal", "causal_else"] %}
                try_cast(
                    json_extract_string(scalars, '$[' || f.{{ flag }} || ']') as boolean
                ) as {{ flag }},
            {% endfor %}
            dtype_word(json_extract_string(types, '$[' || f.q || ']')) as q_dtype,
            dtype_word(
                json_extract_string(types, '$[' || coalesce(f.kv_type, f.k) || ']')
            ) as kv_dtype,
            dtype_word(json_extract_string(types, '$[' || f.out || ']')) as out_dtype,
            dtype_word(json_extract_string(types, '$[' || f.bias || ']')) as bias_dtype
        from operator_texts as o
        join operator_families as f using (trace_id, name)
    )

select
    trace_id,
    event_id,
    {% for tensor in tensors %} {{ tensor }}_dims, {% endfor %}
    k_strides,
    bias_strides,
    q_dtype,
    kv_dtype,
    out_dtype,
    bias_dtype,
    case
        when len(cu_q_dims) = 1 and cu_q_dims[1] > 1
        then cu_q_dims[1] - 1
        when len(lengths_dims) = 1 and lengths_dims[1] > 0
        then lengths_dims[1]
    end as n_seqs,
    nullif(max_q, 0) as max_q,
    nullif(max_k, 0) as max_kv,
    coalesce(causal, causal_else) as is_causal,
    try_cast(mask_type as bigint) as mask_type,
    case
        when window_size > 0 then window_size - 1 when window_left >= 0 then window_left
    end as before,
    case when window_size > 0 then 0 when window_right >= 0 then window_right end as behind,
    coalesce(chunk, 0) as chunk,
    coalesce(len(page_table_dims), 0) > 0 or coalesce(len(lengths_dims), 0) > 0 as in_pool,
    try_cast(layout_flag as bigint) as layout_flag,
    h_kv_at as h_kv,
    d_v_at as d_v
from told
