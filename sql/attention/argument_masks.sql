-- One row an operator that is a call of attention, with the mask that its arguments tell.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace that holds it
-- event_id       BIGINT   -  the operator
-- mask           VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk or unknown
-- window_size    DOUBLE   -  keys of a window, the query's own included, or of a chunk
-- top_k          DOUBLE   -  keys that a query of sparse attention sees
-- mask_source    VARCHAR  -  argument, family, or assumed where an argument should tell
-- bias_elements  DOUBLE   -  elements of a bias or mask that are read; 0 without one
with
    -- An operator that is told no mask may call one that is.
    merged as (
        select
            a.* exclude (is_causal, before, behind, chunk),
            coalesce(a.is_causal, i.is_causal) as is_causal,
            coalesce(a.before, if(i.before >= 0, i.before, null)) as before,
            coalesce(a.behind, if(i.behind >= 0, i.behind, null)) as behind,
            greatest(a.chunk, coalesce(i.chunk, 0)) as chunk,
            f.mask as usual_mask,
            coalesce(f.causal_mask, 'causal_br') as causal_mask,
            -- What it does by default is not what it was told.
            f.causal is not null and f.mask = 'dense' as is_told
        from attention_arguments as a
        join operator_texts as t using (trace_id, event_id)
        join operator_families as f on f.trace_id = t.trace_id and f.name = t.name
        left join inner_arguments as i on i.trace_id = a.trace_id and i.event_id = a.event_id
    ),

    told as (
        select
            *,
            case
                when len(top_k_of_dims) > 0
                then 'topk'
                when chunk > 0
                then 'chunked'
                when
                    before is not null
                    and (is_causal or behind is not null or mask_type > 0 or usual_mask <> 'dense')
                then 'window'
                when mask_type > 0
                then if(mask_type = 1, 'causal_tl', 'causal_br')
                when is_causal or behind = 0
                then causal_mask
                when is_causal is not null or mask_type = 0
                then 'dense'
            end as told_mask
        from merged
    )

select
    trace_id,
    event_id,
    coalesce(told_mask, usual_mask) as mask,
    case
        told_mask when 'chunked' then chunk when 'window' then before + 1 + coalesce(behind, 0)
    end as window_size,
    if(mask = 'topk', top_k_of_dims[-1], null) as top_k,
    case
        when told_mask is not null then 'argument' when is_told then 'assumed' else 'family'
    end as mask_source,
    -- What a view repeats is read once.
    coalesce(
        list_product(list_transform(bias_dims, lambda d, i:if(bias_strides[i] = 0, 1, d))), 0
    ) as bias_elements
from told
