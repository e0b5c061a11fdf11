-- One row a part of an attention call with the pairs of query and key that its mask leaves, and
-- the keys that must be read for them.
-- grain: trace_id, call_no, part
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- call_no   BIGINT   -  the call
-- part      VARCHAR  -  ctx, gen or all
-- n         DOUBLE   -  sequences; NULL where not told
-- sq        DOUBLE   -  sum of their query tokens
-- mask      VARCHAR  -  the mask that counts
-- pairs_lo  DOUBLE   -  pairs of a head, over all sequences, at least
-- pairs     DOUBLE   -  likeliest; NULL where nothing is told
-- pairs_hi  DOUBLE   -  at most; NULL where nothing is told
-- keys      DOUBLE   -  key tokens to read; NULL where nothing is told
with
    -- Sequences of the mean length stand for those whose lengths are not told one by one.
    sized as (
        select
            p.*,
            m.* exclude (trace_id, call_no, part),
            p.sq / p.n as q,
            coalesce(p.sk, if(p.part = 'ctx', p.sq, null)) / p.n as k,
            -- Chosen keys beside a window are blocks: of 4 keys, or all of 128; queries in the
            -- middle.
            if(
                p.mask = 'topk' and p.window_size is not null,
                p.sq * compressed_keys(
                    k - (q - 1) / 2, p.window_size, if(p.top_k is null, 128, 4), p.top_k
                ),
                p.n * mask_pairs(p.mask, q, k, p.window_size, p.top_k)
            ) as even,
            case
                p.mask
                when 'window'
                then p.window_size
                when 'topk'
                then p.top_k + coalesce(p.window_size, 0)
                when 'chunked'
                then p.window_size
            end as most
        from attention_parts as p
        join part_moments as m using (trace_id, call_no, part)
    ),

    bounded as (
        select
            *,
            case
                when uniform and even is not null
                then even
                when mask = 'dense'
                then dense_lo
                when mask = 'causal_br'
                then causal_lo
                when mask in ('causal_tl', 'unknown')
                then least(own_lo, dense_lo)
                -- A query sees itself; the shortest key lengths that sums allow see the least.
                when most is null or mask = 'chunked'
                then sq
                when sq = n and sk is not null
                then least(greatest(sk - n + 1, 1), most) + n - 1
                else coalesce(n * window_pairs(q, q, most), sq)
            end as lo,
            case
                when uniform and even is not null
                then even
                when mask in ('dense', 'unknown', 'block_sparse')
                then dense_hi
                when mask = 'causal_tl'
                then own_hi
                else least(causal_hi, most * sq)
            end as hi,
            case
                when uniform and even is not null
                then even
                when mask in ('dense', 'unknown')
                then dense
                when mask = 'causal_br'
                then causal
                when mask = 'causal_tl'
                then own
                when mask = 'block_sparse'
                then null
                when even is not null
                then greatest(least(even, hi), lo)
                when most is null
                then causal
            end as mid
        from sized
    )

select
    trace_id,
    call_no,
    part,
    n,
    sq,
    mask,
    lo as pairs_lo,
    mid as pairs,
    hi as pairs_hi,
    -- What sequences of the mean length read, where they do not read all.
    case
        when mask = 'topk' and even is not null
        then least(mid, n * k)
        when mask in ('window', 'chunked', 'causal_tl') and n is not null
        then coalesce(n * mask_keys(mask, q, k, window_size, top_k), n * k)
        else coalesce(sk, n * k)
    end as keys
from bounded
