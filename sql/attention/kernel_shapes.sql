-- One row a call of attention that kernel names alone tell, with its sizes. Heads of the grid are
-- those of this rank, heads of the config those of the whole model.
-- grain: trace_id, lead_event_id
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- lead_event_id  BIGINT   -  the kernel that attends, or writes the cache
-- h_q            DOUBLE   -  query heads
-- h_kv           DOUBLE   -  key and value heads
-- d_qk           DOUBLE   -  head size of query and key
-- d_v            DOUBLE   -  head size of value
-- packed         BOOLEAN  -  tokens of several requests stand in one dimension
-- source         VARCHAR  -  kernel name or config: where the heads are from
-- whole          BOOLEAN  -  the heads are those of the whole model
-- mask           VARCHAR  -  dense, causal_br, window, topk or unknown
-- mask_source    VARCHAR  -  kernel name, config, family or assumed
with
    sized as (
        select
            k.*,
            n.mask as named_mask,
            n.library,
            case
                when k.grid_h_kv is not null
                then k.grid_h_kv * coalesce(k.group_size, k.h_q / nullif(k.h_kv, 0))
                else coalesce(k.h_q, k.grid_h_q)
            end as query_heads,
            case
                when k.latent
                then 1
                when k.expands
                then query_heads
                else coalesce(k.grid_h_kv, k.h_kv, k.grid_h_q / nullif(k.group_size, 0))
            end as key_heads,
            coalesce(k.head_dim, if(k.expands, k.wide_d_qk, k.d_qk)) as size_qk,
            if(
                k.latent,
                coalesce(k.d_v, nullif(k.head_dim_v, k.head_dim)),
                coalesce(k.head_dim_v, if(k.expands, k.wide_d_v, k.d_v))
            ) as size_v
        from kernel_leads as k
        join attention_names as n using (trace_id, name)
    )

select
    trace_id,
    lead_event_id,
    if(implementation = 'linear', null, query_heads) as h_q,
    if(implementation = 'linear', null, key_heads) as h_kv,
    if(implementation = 'linear', null, size_qk) as d_qk,
    if(implementation = 'linear', null, size_v) as d_v,
    -- PyTorch's own kernels attend in batches, those of serving engines in packed sequences.
    role = 'kv_write'
    or coalesce(implementation in ('paged', 'linear'), true)
    or not coalesce(
        starts_with(name, 'void pytorch_flash')
        or library
        in ('AOTriton', 'cuDNN', 'CUTLASS memory-efficient', 'FlexAttention', 'SageAttention'),
        false
    ) as packed,
    case
        when query_heads is null
        then null
        when h_q is null or (grid_h_kv is not null and group_size is not null)
        then 'kernel name'
        else 'config'
    end as source,
    coalesce(query_heads = h_q and grid_h_kv is null, false) as whole,
    case
        when role = 'kv_write' or named_mask = 'dense'
        then 'dense'
        when implementation = 'linear'
        then 'unknown'
        when named_mask = 'window'
        then 'window'
        when named_mask = 'causal'
        then 'causal_br'
        when block_size > 1 or (latent and top_k > 0)
        then 'topk'
        when window_size > 0
        then 'window'
        when layered
        then 'unknown'
        when implementation = 'paged'
        then 'causal_br'
        else 'unknown'
    end as mask,
    case
        when role = 'kv_write'
        then 'family'
        when named_mask is not null
        then 'kernel name'
        when mask in ('topk', 'window')
        then 'config'
        when mask = 'causal_br' and h_q is not null and not layered
        then 'config'
        when mask = 'causal_br'
        then 'family'
        else 'assumed'
    end as mask_source
from sized
