-- One row a part of an attention call with what is known of its pairs of query and key, each as
-- the least it can be, the likeliest, and the most. Where sums do not tell, lengths lie between
-- all sequences being equal and as many as fit being of the longest; products of query and key
-- lengths lie in the box that the shortest and the longest of both allow (McCormick's bounds).
-- grain: trace_id, call_no, part
-- keep: yes
--
-- trace_id   VARCHAR  -  the trace
-- call_no    BIGINT   -  the call
-- part       VARCHAR  -  ctx, gen or all
-- dense_lo   DOUBLE   -  pairs without a mask, at least
-- dense      DOUBLE   -  likeliest; NULL where nothing is told
-- dense_hi   DOUBLE   -  at most; NULL where nothing is told
-- causal_lo  DOUBLE   -  pairs under a causal mask aligned bottom-right, at least
-- causal     DOUBLE   -  likeliest
-- causal_hi  DOUBLE   -  at most
-- own_lo     DOUBLE   -  pairs of a query with itself or a query before it, at least
-- own        DOUBLE   -  likeliest
-- own_hi     DOUBLE   -  at most
with
    squares as (
        select
            *,
            -- The others share what the longest leaves.
            case
                when n = 1
                then sq * sq
                when max_q < sq
                then max_q * max_q + (sq - max_q) * (sq - max_q) / (n - 1)
                else sq * sq / n
            end as likely,
            coalesce(sqsq, sq * sq / n, sq) as sqsq_lo,
            coalesce(
                sqsq,
                floor(sq / max_q) * max_q * max_q
                + (sq - floor(sq / max_q) * max_q) * (sq - floor(sq / max_q) * max_q)
            ) as sqsq_hi,
            coalesce(sqsq, greatest(least(likely, sqsq_hi), sqsq_lo)) as sqsq_mid,
            -- With as many keys as queries, every sequence attends to itself.
            sk = sq as is_self
        from attention_parts
    ),

    products as (
        select
            *,
            case
                when sqsk is not null
                then sqsk
                when is_self or sk is null
                then sqsq_lo
                else
                    greatest(
                        sq,
                        if(n is null, sk, sq + sk - n),
                        max_q * sk + max_k * sq - n * max_q * max_k
                    )
            end as x_lo,
            case
                when sqsk is not null
                then sqsk
                when is_self
                then sqsq_hi
                when sk is null
                then sq * max_k
                else
                    least(
                        max_q * sk,
                        max_k * sq,
                        max_q * sk - n * max_q + sq,
                        max_k * sq - n * max_k + sk
                    )
            end as x_hi,
            case
                when sqsk is not null
                then sqsk
                when is_self or (sk is null and part = 'ctx')
                then sqsq_mid
                when sk is not null and n is not null
                then greatest(least(sq * sk / n, x_hi), x_lo)
            end as x_mid
        from squares
    ),

    causals as (
        select
            *,
            if(
                sqsk is not null and sqsq is not null,
                context_pairs(sq, sqsq, sqsk),
                greatest(x_lo - sqsq_hi / 2 + sq / 2, (sqsq_lo + sq) / 2)
            ) as causal_lo,
            if(is_self, (sqsq_mid + sq) / 2, context_pairs(sq, sqsq_mid, x_mid)) as likely_causal,
            if(is_self, (sqsq_hi + sq) / 2, context_pairs(sq, sqsq_lo, x_hi)) as causal_hi
        from products
    )

select
    trace_id,
    call_no,
    part,
    x_lo as dense_lo,
    x_mid as dense,
    x_hi as dense_hi,
    causal_lo,
    if(likely_causal is null, null, greatest(least(likely_causal, causal_hi), causal_lo)) as causal,
    causal_hi,
    (sqsq_lo + sq) / 2 as own_lo,
    (sqsq_mid + sq) / 2 as own,
    (sqsq_hi + sq) / 2 as own_hi
from causals
