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
    typed as (
        select
            *,
            h_kv * (d_qk + if(coalesce(latent, false), 0, coalesce(d_v, d_qk))) as kv_width,
            element_bytes(q_dtype) as q_size,
            element_bytes(coalesce(kv_dtype, q_dtype)) as kv_size,
            -- No kernel that reads fp8 queries is known to write fp8 without being told.
            element_bytes(
                coalesce(o_dtype, if(starts_with(q_dtype, 'fp8'), 'bf16', q_dtype))
            ) as o_size
        from attention_calls
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
            p.trace_id,
            p.call_no,
            p.part,
            p.n,
            p.sq,
            p.mask,
            p.keys,
            if(c.implementation = 'linear', null, p.pairs_lo) as pairs_lo,
            if(c.implementation = 'linear', null, p.pairs) as pairs,
            if(c.implementation = 'linear', null, p.pairs_hi) as pairs_hi,
            case
                when c.implementation = 'linear' and c.direction = 'bwd'
                then null
                when c.implementation = 'linear'
                then linear_flops(1, c.h_kv, c.d_qk, coalesce(c.d_v, c.d_qk))
                when c.direction = 'bwd' and c.implementation in ('unfused', 'standard')
                then stored_backward_flops(c.h_q, 1, c.d_qk, coalesce(c.d_v, c.d_qk))
                when c.direction = 'bwd'
                then backward_flops(c.h_q, 1, c.d_qk, coalesce(c.d_v, c.d_qk))
                else forward_flops(c.h_q, 1, c.d_qk, coalesce(c.d_v, c.d_qk))
            end as per_pair,
            c.* exclude (trace_id, call_no, mask)
        from part_pairs as p
        join typed as c using (trace_id, call_no)
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
        then linear_bytes(c.sq, c.n, c.h_q, c.h_kv, c.d_qk, coalesce(c.d_v, c.d_qk), c.q_size, 4)
        when c.direction = 'bwd'
        then
            backward_bytes(
                c.sq,
                c.keys,
                c.h_q,
                c.h_kv,
                c.d_qk,
                coalesce(c.d_v, c.d_qk),
                coalesce(c.latent, false),
                c.q_size,
                c.kv_size,
                c.o_size
            )
        else
            forward_bytes(
                c.sq,
                c.keys,
                c.h_q,
                c.h_kv,
                c.d_qk,
                coalesce(c.d_v, c.d_qk),
                coalesce(c.latent, false),
                c.q_size,
                c.kv_size,
                c.o_size
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
