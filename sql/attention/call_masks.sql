-- One row an attention call that attends, with the mask that its work is counted by, and what is
-- assumed about it.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id         VARCHAR  -  the trace
-- call_no          BIGINT   -  the call
-- mask             VARCHAR  -  as in attention_calls; unknown is causal at least, dense at most
-- by_load          BOOLEAN  -  whether its lengths are those of the step's requests
-- mask_assumption  VARCHAR  -  what is assumed about the mask; NULL where nothing is
-- formula          VARCHAR  -  the formula without its phase: causal_br, mla_window, ...
with
    masked as (
        select
            *,
            -- Unfused attention multiplies whole matrices and masks afterwards.
            case
                when implementation = 'unfused'
                then 'dense'
                when coalesce(mask, 'unknown') = 'unknown' and packed
                then 'causal_br'
                else coalesce(mask, 'unknown')
            end as used_mask,
            count(layer_no) over (partition by trace_id) = 0 as is_placeless
        from attention_calls
        where implementation is distinct from 'cache'
    )

select
    trace_id,
    call_no,
    used_mask as mask,
    coalesce(packed, false)
    or (n_kv is null and implementation is distinct from 'linear') as by_load,
    nullif(
        concat_ws(
            '; ',
            case
                when implementation = 'linear'
                then null
                when implementation = 'unfused'
                then 'all of the score matrix, as it is multiplied before it is masked'
                when coalesce(mask, 'unknown') = 'unknown'
                then
                    if(packed, 'a causal mask, as none is recorded', 'no mask, as none is recorded')
                when mask in ('window', 'chunked') and window_size is null
                then 'all keys before a query, as the size of its ' || mask || ' is not recorded'
                when mask = 'topk' and top_k is null and window_size is null
                then 'all keys, as the number of chosen ones is not recorded'
                when mask_source = 'assumed'
                then
                    if(mask = 'dense', 'no mask', 'mask ' || mask)
                    || ', as nothing recorded tells another'
                when mask_source = 'family' and packed and starts_with(mask, 'causal')
                then 'causal over all keys, as no window is recorded'
            end,
            if(
                shape_source = 'config' and is_placeless,
                'heads of the config, though none of its layers is found in the trace',
                null
            )
        ),
        ''
    ) as mask_assumption,
    case
        when implementation = 'linear'
        then 'linear'
        else
            concat_ws(
                '_', if(latent, 'mla', null), if(implementation = 'unfused', 'unfused', used_mask)
            )
    end as formula
from masked
