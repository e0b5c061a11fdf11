-- One row an attention call with its work, parts added up. A number is missing where it is for
-- a part, or where a damaged shape makes none of it.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id        VARCHAR  -      the trace
-- call_no         BIGINT   -      the call
-- pairs_lo        DOUBLE   -      pairs of query and key of a head, at least
-- pairs           DOUBLE   -      likeliest
-- pairs_hi        DOUBLE   -      at most
-- flops_lo        DOUBLE   -      FLOPs at least
-- flops           DOUBLE   -      likeliest; 0 where a cache is only written
-- flops_hi        DOUBLE   -      at most
-- bytes           DOUBLE   -      what must be moved
-- page_gap_bytes  DOUBLE   bytes  what pages of the cache add to that at most
-- score_bytes     DOUBLE   bytes  traffic of the matrix of scores, where unfused
-- ctx_flops       DOUBLE   -      FLOPs of what is in prefill
-- gen_flops       DOUBLE   -      of what generates
-- ctx_bytes       DOUBLE   bytes  bytes of what is in prefill
-- gen_bytes       DOUBLE   bytes  of what generates
-- ctx_tokens      DOUBLE   -      query tokens in prefill
-- gen_tokens      DOUBLE   -      of generation
-- is_whole        BOOLEAN  -      whether the call was counted in one part, whatever its phase
with
    summed as (
        select
            trace_id,
            call_no,
            {% for key in ["pairs_lo", "pairs", "pairs_hi", "flops", "bytes", "page_gap_bytes"] %}
                if(count({{ key }}) = count(*), sum({{ key }}), null) as {{ key }},
            {% endfor %}
            {% for key in ["pairs_lo", "pairs_hi"] %}
                if(
                    count({{ key }}) = count(*), sum(per_pair * {{ key }}), null
                ) as {{ key | replace("pairs", "flops") }},
            {% endfor %}
            {% for part in ["ctx", "gen"] %}
                sum(flops) filter (part = '{{ part }}') as {{ part }}_flops,
                sum(bytes) filter (part = '{{ part }}') as {{ part }}_bytes,
                sum(sq) filter (part = '{{ part }}') as {{ part }}_tokens,
            {% endfor %}
            bool_or(part = 'all') as is_whole
        from part_work
        group by trace_id, call_no
    ),

    -- Cached keys and values are read where they were made and written into the cache.
    beside as (
        select
            c.trace_id,
            c.call_no,
            c.implementation = 'linear' as is_linear,
            c.implementation = 'cache' as is_cache,
            coalesce(coalesce(c.n_q, c.n_kv) * coalesce(c.batch, 1), l.c_sq + l.g_sq)
            * c.h_kv
            * (c.d_qk + if(coalesce(c.latent, false), 0, coalesce(c.d_v, c.d_qk)))
            * (
                element_bytes(c.q_dtype) + element_bytes(coalesce(c.kv_dtype, c.q_dtype))
            ) as cache_bytes,
            if(
                c.bias_elements > 0,
                c.bias_elements * element_bytes(coalesce(c.bias_dtype, c.q_dtype)),
                0
            ) as bias_bytes,
            -- Written, read and written by the softmax, read; backward reads the weights, and
            -- has their gradient and that of the scores written and read as well.
            if(
                c.implementation = 'unfused',
                if(c.direction = 'bwd', 7, 4)
                * coalesce(c.batch, 1)
                * c.h_q
                * c.n_q
                * c.n_kv
                * element_bytes(c.q_dtype),
                null
            ) as score_bytes
        from attention_calls as c
        left join attention_loads as l using (trace_id, call_no)
        where
            coalesce(
                least(
                    c.batch, c.n_q, c.n_kv, c.h_q, c.h_kv, c.d_qk, c.d_v, c.n_seqs, c.bias_elements
                ),
                0
            )
            >= 0
    )

select
    b.trace_id,
    b.call_no,
    finite(s.pairs_lo) as pairs_lo,
    finite(s.pairs) as pairs,
    finite(s.pairs_hi) as pairs_hi,
    case
        when b.is_cache then 0 when b.is_linear then finite(s.flops) else finite(s.flops_lo)
    end as flops_lo,
    if(b.is_cache, 0, finite(s.flops)) as flops,
    case
        when b.is_cache then 0 when b.is_linear then finite(s.flops) else finite(s.flops_hi)
    end as flops_hi,
    finite(if(b.is_cache, b.cache_bytes, s.bytes + b.bias_bytes)) as bytes,
    finite(s.page_gap_bytes) as page_gap_bytes,
    finite(b.score_bytes) as score_bytes,
    finite(s.ctx_flops) as ctx_flops,
    finite(s.gen_flops) as gen_flops,
    finite(s.ctx_bytes) as ctx_bytes,
    finite(s.gen_bytes) as gen_bytes,
    finite(s.ctx_tokens) as ctx_tokens,
    finite(s.gen_tokens) as gen_tokens,
    coalesce(s.is_whole, false) as is_whole
from beside as b
left join summed as s using (trace_id, call_no)
