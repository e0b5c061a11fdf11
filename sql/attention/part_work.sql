-- One row a part of an attention call with its FLOPs and bytes.
-- grain: trace_id, call_no, part
-- keep: yes
--
-- trace_id        VARCHAR  -      the trace
-- call_no         BIGINT   -      the call
-- part            VARCHAR  -      ctx, gen or all
-- sq              DOUBLE   -      query tokens
-- pairs_lo        DOUBLE   -      pairs of query and key of a head, at least
-- pairs           DOUBLE   -      likeliest; NULL where unknown
-- pairs_hi        DOUBLE   -      at most
-- per_pair        DOUBLE   -      FLOPs of a pair in all heads, or of a token where linear
-- flops           DOUBLE   -      FLOPs; NULL where unknown
-- bytes           DOUBLE   -      what must be moved; NULL where unknown
-- page_gap_bytes  DOUBLE   bytes  what pages of the cache add at most; NULL where unknown
with
    -- Prefill tokens of a mixed step expand compressed keys, which the others read as they are.
    joined as (
        select
            p.*,
            p.part = 'ctx' and c.ctx_d_qk is not null as is_wide,
            c.* exclude (trace_id, call_no, mask) replace (
                if(is_wide, c.h_q, c.h_kv) as h_kv,
                if(is_wide, c.ctx_d_qk, c.d_qk) as d_qk,
                if(is_wide, c.ctx_d_v, c.d_v) as d_v,
                c.latent and not is_wide as latent,
                coalesce(if(is_wide, null, c.kv_dtype), c.q_dtype) as kv_dtype
            )
        from part_pairs as p
        join attention_calls as c using (trace_id, call_no)
    ),

    typed as (
        select
            *,
            h_kv * (d_qk + if(latent, 0, d_v)) as kv_width,
            element_bytes(q_dtype) as q_size,
            element_bytes(kv_dtype) as kv_size,
            -- No kernel that reads fp8 queries is known to write fp8 without being told.
            element_bytes(
                coalesce(o_dtype, if(starts_with(q_dtype, 'fp8'), 'bf16', q_dtype))
            ) as o_size
        from joined
    ),

    paged as (
        select a.trace_id, a.call_no, max(n.page_size)::double as page_size
        from attention_activities as a
        join activities as v using (trace_id, event_id)
        join attention_names as n on n.trace_id = v.trace_id and n.name = v.name
        group by a.trace_id, a.call_no
    ),

    counted as (
        select
            * exclude (pairs_lo, pairs, pairs_hi),
            if(implementation = 'linear', null, pairs_lo) as pairs_lo,
            if(implementation = 'linear', null, pairs) as pairs,
            if(implementation = 'linear', null, pairs_hi) as pairs_hi,
            case
                when implementation = 'linear' and direction = 'bwd'
                then null
                when implementation = 'linear'
                then linear_flops(1, h_kv, d_qk, d_v)
                when direction = 'bwd' and implementation in ('unfused', 'standard')
                then stored_backward_flops(h_q, 1, d_qk, d_v)
                when direction = 'bwd'
                then backward_flops(h_q, 1, d_qk, d_v)
                else forward_flops(h_q, 1, d_qk, d_v)
            end as per_pair
        from typed
    )

select
    c.trace_id,
    c.call_no,
    c.part,
    c.sq,
    c.pairs_lo,
    c.pairs,
    c.pairs_hi,
    c.per_pair,
    c.per_pair * if(c.implementation = 'linear', c.sq, c.pairs) as flops,
    case
        when c.implementation = 'linear' and c.direction = 'bwd'
        then null
        when c.implementation = 'linear'
        then linear_bytes(c.sq, c.n, c.h_q, c.h_kv, c.d_qk, c.d_v, c.q_size, 4)
        when c.direction = 'bwd'
        then
            backward_bytes(
                c.sq, c.keys, c.h_q, c.h_kv, c.d_qk, c.d_v, c.latent, c.q_size, c.kv_size, c.o_size
            )
        else
            forward_bytes(
                c.sq, c.keys, c.h_q, c.h_kv, c.d_qk, c.d_v, c.latent, c.q_size, c.kv_size, c.o_size
            )
    end as bytes,
    if(
        c.mask = 'topk',
        null,
        (floor((c.keys + c.n * (g.page_size - 1)) / g.page_size) * g.page_size - c.keys)
        * c.kv_width
        * c.kv_size
    ) as page_gap_bytes
from counted as c
left join paged as g using (trace_id, call_no)
