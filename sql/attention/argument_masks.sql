-- One row an operator that is a call of attention, with the mask that its arguments tell.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace that holds it
-- event_id       BIGINT   -  the operator
-- mask           VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk or unknown
-- window_size    DOUBLE   -  keys of a window, the query's own included, or of a chunk
-- top_k          DOUBLE   -  keys that a query of sparse attention sees
-- mask_source    VARCHAR  -  argument or family
-- bias_elements  DOUBLE   -  elements of a bias or mask that are read; 0 without one
with
    told as (
        select
            a.*,
            f.mask as usual_mask,
            f.causal_mask,
            case
                when len(a.top_k_of_dims) > 0
                then 'topk'
                when a.chunk > 0
                then 'chunked'
                when
                    a.before is not null
                    and (
                        a.is_causal or a.behind is not null or a.mask_type > 0 or f.mask <> 'dense'
                    )
                then 'window'
                when a.mask_type > 0
                then if(a.mask_type = 1, 'causal_tl', 'causal_br')
                when a.is_causal or a.behind = 0
                then f.causal_mask
                when a.is_causal is not null or a.mask_type = 0
                then 'dense'
            end as told_mask
        from attention_arguments as a
        join operator_texts as t using (trace_id, event_id)
        join operator_families as f on f.trace_id = t.trace_id and f.name = t.name
    )

select
    trace_id,
    event_id,
    coalesce(told_mask, usual_mask) as mask,
    case
        told_mask when 'chunked' then chunk when 'window' then before + 1 + coalesce(behind, 0)
    end as window_size,
    if(mask = 'topk', top_k_of_dims[-1], null) as top_k,
    if(told_mask is null, 'family', 'argument') as mask_source,
    -- What a view repeats is read once.
    coalesce(
        list_product(list_transform(bias_dims, lambda d, i:if(bias_strides[i] = 0, 1, d))), 0
    ) as bias_elements
from told
