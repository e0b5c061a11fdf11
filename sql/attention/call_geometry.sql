-- One row a call of a serving engine's operator of a trace with a config: what that tells of its
-- layer, or of all layers where they are alike and the layer is not known.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- call_no       BIGINT   -  the call
-- fills         BOOLEAN  -  the recorded arguments tell no heads
-- mask          VARCHAR  -  window or topk, where its arguments tell none and the config does
-- mask_source   VARCHAR  -  config, where that tells the mask
-- window_size   DOUBLE   -  keys of that window; beside topk, of the one that is not compressed
-- top_k         DOUBLE   -  keys, or blocks of them, that are chosen
-- h_q           DOUBLE   -  query heads
-- h_kv          DOUBLE   -  key and value heads
-- d_qk          DOUBLE   -  head size of query and key
-- d_v           DOUBLE   -  head size of value
-- ctx_d_qk      DOUBLE   -  head size of expanded keys where only prefill has them
-- ctx_d_v       DOUBLE   -  head size of their values
-- latent        BOOLEAN  -  key and value are one compressed tensor
-- q_dtype       VARCHAR  -  type of activations
-- kv_dtype      VARCHAR  -  type of the cache
-- o_dtype       VARCHAR  -  type of the output
-- dtype_source  VARCHAR  -  kernel name (of those that write the cache) or config
-- shape_source  VARCHAR  -  config; NULL where it does not tell all sizes
-- problem       VARCHAR  -  what is not known or not certain
with
    -- Kernels that write the cache name types that those that read it do not.
    written as (
        select trace_id, mode(q_dtype) as q_dtype, mode(kv_dtype) as kv_dtype
        from attention_names
        where role = 'kv_write'
        group by trace_id
    ),

    told as (
        select
            t.trace_id,
            t.call_no,
            c.h_q is null as fills,
            (c.mask_source = 'family' or c.mask = 'window')
            and (g.trace_id is not null or not m.layered) as tells,
            c.mask = 'causal_br' as is_causal,
            c.window_size is not null as has_window,
            {% for size in ["window_size", "top_k", "block_size"] %}
                case
                    when tells then if(g.trace_id is null, m.{{ size }}, g.{{ size }})
                end as {{ size }},
            {% endfor %}
            {% for size in ["h_q", "h_kv", "d_qk", "d_v", "wide_d_qk", "wide_d_v"] %}
                coalesce(g.{{ size }}, m.{{ size }}) as {{ size }},
            {% endfor %}
            coalesce(g.latent, m.latent, false) as compresses,
            -- Kernels that attend without a cache have its keys expanded.
            compresses and k.n_wide > 0 and k.n_wide = k.n_core as expands,
            compresses and k.n_wide between 1 and k.n_core - 1 as mixes,
            coalesce(w.q_dtype, m.dtype) as q_dtype,
            coalesce(w.kv_dtype, m.dtype) as kv_dtype,
            if(
                w.q_dtype is null, if(m.dtype is null, null, 'config'), 'kernel name'
            ) as dtype_source,
            f.world_size
        from call_times as t
        join
            operator_calls as c
            on t.way = 'operator'
            and c.trace_id = t.trace_id
            and c.operator_event_id = t.key_event_id
        join
            operator_kernels as k
            on k.trace_id = c.trace_id
            and k.host_trace_id = c.host_trace_id
            and k.operator_event_id = c.operator_event_id
        join model_geometry as m on m.trace_id = t.trace_id
        join raw_facts as f on f.trace_id = t.trace_id
        left join written as w on w.trace_id = t.trace_id
        left join layer_geometry as g on g.trace_id = t.trace_id and g.layer_no = t.layer_no
        where c.implementation = 'paged' and c.direction = 'fwd'
    )

select
    trace_id,
    call_no,
    fills,
    case
        when block_size > 1 or (top_k > 0 and compresses and not expands)
        then 'topk'
        when window_size > 0
        then 'window'
    end as mask,
    -- That there is no window is told, too.
    if(tells and not has_window and (is_causal or mask is not null), 'config', null) as mask_source,
    window_size,
    if(mask = 'topk', top_k, null) as top_k,
    h_q,
    if(expands, h_q, h_kv) as h_kv,
    if(expands, wide_d_qk, d_qk) as d_qk,
    if(expands, wide_d_v, d_v) as d_v,
    if(mixes, wide_d_qk, null) as ctx_d_qk,
    if(mixes, wide_d_v, null) as ctx_d_v,
    compresses and not expands as latent,
    if(fills, q_dtype, null) as q_dtype,
    if(fills, kv_dtype, null) as kv_dtype,
    if(fills, q_dtype, null) as o_dtype,
    if(fills, dtype_source, null) as dtype_source,
    if(h_q is null or if(expands, wide_d_qk, d_qk) is null, null, 'config') as shape_source,
    case
        when shape_source is null
        then 'no shapes recorded, and the config does not tell all: profile with record_shapes=True'
        when world_size > 1
        then
            'heads are those of the whole model, and the trace is of one of '
            || world_size
            || ' ranks'
    end as problem
from told
