-- One row an operator that is a call of attention, with the sizes that its tensors tell by the
-- layout of its family.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace that holds it
-- event_id  BIGINT   -  the operator
-- batch     DOUBLE   -  batch
-- n_q       DOUBLE   -  query tokens of a sequence; of all where packed
-- n_kv      DOUBLE   -  key tokens; NULL where key and value are a pool
-- h_q       DOUBLE   -  query heads
-- h_kv      DOUBLE   -  key and value heads in memory
-- d_qk      DOUBLE   -  head size of query and key
-- d_v       DOUBLE   -  head size of value
-- rows      DOUBLE   -  sequences, where they stand in rows of equal length
-- row_q     DOUBLE   -  query tokens of each of these
-- latent    BOOLEAN  -  key and value are one compressed tensor
-- packed    BOOLEAN  -  tokens of several requests stand in one dimension
-- in_pool   BOOLEAN  -  key and value are a pool of which a part is read
-- q_head    DOUBLE   -  head size of the query as it was passed
-- out_head  DOUBLE   -  head size of the output
with
    shaped as (
        select
            *,
            tensor_shape(q, q_layout) as qs,
            tensor_shape(k, k_layout) as ks,
            tensor_shape(v, k_layout) as vs,
            k_layout in ('pages', 'pool_heads', 'latent') as is_pool,
            -- Of both parts of a linear layer's query and key, half is one of them.
            (q_dims[2] - k_dims[2] * v_dims[3]) / 2 as state_width,
            -- Its heads are as large as those of the value, or half as many.
            if(
                state_width % nullif(v_dims[3], 0) = 0,
                v_dims[3],
                2 * state_width / nullif(k_dims[2], 0)
            ) as state_d,
            case
                when k_layout = 'BHND' then k_strides[-3] when k_layout = 'BNHD' then k_strides[-2]
            end as head_stride
        from attention_arguments as a
        join argument_layouts as l using (trace_id, event_id)
    )

select
    trace_id,
    event_id,
    if(layout = 'GDN', 1, qs.batch) as batch,
    if(layout = 'GDN', q_dims[1], qs.n) as n_q,
    if(is_pool or implementation = 'paged', null, ks.n) as n_kv,
    if(layout = 'GDN', state_width / nullif(state_d, 0), qs.h) as h_q,
    case
        when layout = 'GDN'
        then k_dims[2]
        when h_kv > 0
        then h_kv
        when kv_layout = 'pool_heads' and len(k_dims) = 4
        then least(k_dims[2], k_dims[3])
        -- Heads that a view repeats stand in memory once.
        when head_stride = 0 and ks.h > 1
        then if(len(k_dims) = 5, k_dims[3], 1)
        else ks.h
    end as h_kv,
    case
        when layout = 'GDN'
        then state_d
        when len(k_rope_dims) > 0
        then ks.d + k_rope_dims[-1]
        else qs.d + coalesce(q_rope_dims[-1], 0)
    end as d_qk,
    case
        when layout = 'GDN'
        then v_dims[3]
        when len(k_rope_dims) > 0
        then ks.d
        when k_layout in ('latent', 'pool_heads')
        then coalesce(d_v, usual_d_v, qs.d)
        else coalesce(vs.d, ks.d)
    end as d_v,
    if(is_packed and len(q_dims) = 4, q_dims[1], null) as rows,
    if(is_packed and len(q_dims) = 4, q_dims[2], null) as row_q,
    k_layout = 'latent' or coalesce(len(q_rope_dims), 0) > 0 as latent,
    coalesce(is_packed or layout = 'GDN', false) as packed,
    is_pool as in_pool,
    qs.d as q_head,
    if(len(out_dims) = 2, out_dims[2] / nullif(qs.h, 0), out_dims[-1]) as out_head
from shaped
