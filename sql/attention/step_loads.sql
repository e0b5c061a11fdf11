-- One row a distinct name of a range that tells what its requests weigh: sums over the requests
-- that are in prefill (c_) and over those that generate (g_). vLLM, SGLang and ATOM write them
-- where their annotations are detailed; vLLM once wrote tokens and their squares alone.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as written
-- tier      VARCHAR  -  what it tells: sums, squares (key lengths are missing) or counts
-- c_n       DOUBLE   -  prefill requests
-- c_sq      DOUBLE   -  sum of their query tokens
-- c_sk      DOUBLE   -  sum of their key tokens, cached and new; NULL where not told
-- c_sqsq    DOUBLE   -  sum of squares of query tokens; NULL where not told
-- c_sqsk    DOUBLE   -  sum of query tokens times key tokens; NULL where not told
-- g_n       DOUBLE   -  generation requests
-- g_sq      DOUBLE   -  as c_sq
-- g_sk      DOUBLE   -  as c_sk
-- g_sqsq    DOUBLE   -  as c_sqsq
-- g_sqsk    DOUBLE   -  as c_sqsk
-- exact     BOOLEAN  -  whether all of it is told, and nothing assumed
-- note      VARCHAR  -  what is assumed or missing
with
    told as (
        select trace_id, name, 'sums' as tier, 1 as rank, * exclude (trace_id, name)
        from request_sums
        union all by name
        -- Without the key lengths, that nothing is cached is the likeliest reading.
        select
            trace_id,
            name,
            'squares' as tier,
            2 as rank,
            c_n,
            c_sq,
            c_sq as c_sk,
            c_sqsq,
            c_sqsq as c_sqsk,
            g_n,
            g_sq,
            if(g_n = 0, 0, null) as g_sk,
            if(g_sq = g_n, g_sq, null) as g_sqsq,
            if(g_n = 0, 0, null) as g_sqsk,
            false as exact,
            concat_ws(
                '; ',
                if(c_n > 0, 'no cached prefix, as key lengths are not told', null),
                if(g_n > 0, 'key lengths of generation not told', null)
            ) as note
        from request_squares
        union all by name
        select
            trace_id,
            name,
            'counts' as tier,
            3 as rank,
            c_n,
            c_sq,
            c_sk,
            if(c_n <= 1, c_sq * c_sq, null) as c_sqsq,
            if(c_n <= 1, c_sq * c_sk, null) as c_sqsk,
            g_n,
            g_sq,
            if(g_n = 0, 0, null) as g_sk,
            if(g_sq = g_n, g_sq, null) as g_sqsq,
            if(g_n = 0, 0, null) as g_sqsk,
            false as exact,
            case
                when g_n > 0
                then 'the step tells no key lengths: profile with detailed step annotations'
                when c_n > 1
                then 'no cached prefix and requests of equal length, as only their sum is told'
                else 'no cached prefix, as key lengths are not told'
            end as note
        from
            (
                select distinct
                    trace_id,
                    name,
                    n_context_requests::double as c_n,
                    n_context_tokens::double as c_sq,
                    (n_context_tokens + n_prior_tokens)::double as c_sk,
                    n_generation_requests::double as g_n,
                    n_generation_tokens::double as g_sq
                from annotations
                where kind = 'step'
            )
        where c_n is not null and g_n is not null
    )

select
    trace_id,
    name,
    tier,
    c_n,
    c_sq,
    c_sk,
    c_sqsq,
    c_sqsk,
    g_n,
    g_sq,
    g_sk,
    g_sqsq,
    g_sqsk,
    exact,
    note
from told
where c_n + g_n > 0 and coalesce(c_sq + g_sq, 1) > 0
qualify row_number() over (partition by trace_id, name order by rank) = 1
