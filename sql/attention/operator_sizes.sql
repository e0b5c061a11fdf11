-- One row an operator that is a call of attention and whose kernels ran, with what its arguments
-- and the names of its kernels tell together.
-- grain: trace_id, operator_event_id
-- keep: yes
--
-- trace_id           VARCHAR  -  the trace of its activities
-- host_trace_id      VARCHAR  -  the trace that holds it
-- operator_event_id  BIGINT   -  the operator
-- batch              DOUBLE   -  batch
-- n_q                DOUBLE   -  query tokens of a sequence; of all where packed
-- h_q                DOUBLE   -  query heads
-- h_kv               DOUBLE   -  key and value heads in memory
-- d_qk               DOUBLE   -  head size of query and key
-- d_v                DOUBLE   -  head size of value
-- ctx_d_qk           DOUBLE   -  head size of expanded keys where only prefill has them
-- ctx_d_v            DOUBLE   -  head size of their values
-- kv_dtype           VARCHAR  -  type of key and value, or of their cache
-- mask               VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk or unknown
-- mask_source        VARCHAR  -  argument, family or kernel name
-- latent             BOOLEAN  -  key and value are one compressed tensor
with
    joined as (
        select
            k.*,
            s.* exclude (trace_id, event_id),
            a.q_dims,
            a.k_dims,
            -- Prefill of a latent cache expands it first: then heads are as the query has them.
            s.latent and s.out_head > 0 and k.n_wide > 0 and k.n_wide = k.n_core as is_expanded,
            s.latent and s.out_head > 0 and k.n_wide between 1 and k.n_core - 1 as is_mixed,
            -- Rows that are not cut into heads are, where a kernel or the config tells their size.
            if(
                s.h_q is null and len(a.q_dims) = 2 and f.layout = 'TND',
                coalesce(nullif(k.head_dim, 0), if(m.latent, null, m.d_qk)),
                null
            ) as cut,
            (s.mask = 'unknown' or s.mask_source = 'assumed')
            and k.ran_mask is not null
            or (s.window_size is null and k.ran_mask = 'window') as is_named_mask,
            -- A cache that is bytes to PyTorch is fp8 where that is asked for.
            case
                when s.kv_dtype <> 'uint8'
                then s.kv_dtype
                when contains(t.concrete_inputs, '"fp8')
                then 'fp8_e4m3'
                when s.kv_dtype is not null
                then 'int8'
            end as told_kv
        from operator_kernels as k
        join
            operator_texts as t on t.trace_id = k.host_trace_id and t.event_id = k.operator_event_id
        join operator_families as f on f.trace_id = t.trace_id and f.name = t.name
        join operator_shapes as s on s.trace_id = t.trace_id and s.event_id = t.event_id
        join attention_arguments as a on a.trace_id = t.trace_id and a.event_id = t.event_id
        left join model_geometry as m on m.trace_id = k.trace_id
    )

select
    trace_id,
    host_trace_id,
    operator_event_id,
    if(cut is null, batch, 1) as batch,
    if(cut is null, n_q, q_dims[1]) as n_q,
    if(cut is null, h_q, q_dims[2] / cut) as h_q,
    case when cut > 0 then k_dims[2] / cut when is_expanded then h_q else h_kv end as h_kv,
    case when cut > 0 then cut when is_expanded then q_head else d_qk end as d_qk,
    case when cut > 0 then cut when is_expanded then out_head else d_v end as d_v,
    if(is_mixed, q_head, null) as ctx_d_qk,
    if(is_mixed, out_head, null) as ctx_d_v,
    coalesce(ran_kv, cache_dtype, told_kv, ran_q) as kv_dtype,
    if(is_named_mask, if(ran_mask = 'causal', 'causal_br', ran_mask), mask) as mask,
    if(is_named_mask, 'kernel name', mask_source) as mask_source,
    latent and not is_expanded as latent
from joined
