-- One row a part of an attention call whose work is counted on its own: what is in prefill, what
-- generates, or all of it where every sequence of the batch has the same length.
-- grain: trace_id, call_no, part
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- call_no      BIGINT   -  the call
-- part         VARCHAR  -  ctx, gen or all
-- n            DOUBLE   -  sequences; NULL where not told
-- sq           DOUBLE   -  sum of their query tokens
-- sk           DOUBLE   -  sum of their key tokens; NULL where not told
-- sqsq         DOUBLE   -  sum of squares of query tokens; NULL where not told
-- sqsk         DOUBLE   -  sum of query tokens times key tokens; NULL where not told
-- max_q        DOUBLE   -  most query tokens that a sequence can have, as far as told
-- max_k        DOUBLE   -  most key tokens that a sequence can have, as far as told
-- uniform      BOOLEAN  -  whether all sequences are known to be of one length
-- mask         VARCHAR  -  the mask that counts
-- window_size  DOUBLE   -  keys of a window, or tokens of a chunk
-- top_k        DOUBLE   -  keys that a query of sparse attention attends to
with
    masked as (
        select
            c.trace_id,
            c.call_no,
            c.batch,
            c.n_q,
            c.n_kv,
            c.max_q,
            c.max_kv,
            m.mask,
            c.window_size,
            c.top_k,
            m.by_load
        from attention_calls as c
        join call_masks as m using (trace_id, call_no)
    ),

    shared as (
        select
            m.*,
            {% for part in ["c", "g"] %}
                {
                    'part':'{{ "ctx" if part == "c" else "gen" }}',
                    'n':l.{{ part }}_n,
                    'sq':l.{{ part }}_sq,
                    'sk':l.{{ part }}_sk,
                    'sqsq':l.{{ part }}_sqsq,
                    'sqsk':l.{{ part }}_sqsk
                } as {{ part }}_part,
            {% endfor %}
        from masked as m
        join attention_loads as l using (trace_id, call_no)
        where m.by_load
    ),

    parts as (select *, unnest([c_part, g_part]) as p from shared),

    rows_of as (
        select
            trace_id,
            call_no,
            p.part as part,
            p.n as n,
            p.sq as sq,
            p.sk as sk,
            p.sqsq as sqsq,
            p.sqsk as sqsk,
            -- A stated maximum that the tokens cannot hold is padding.
            if(max_q * p.n >= p.sq, least(max_q, p.sq), p.sq) as max_q,
            if(max_kv * p.n >= p.sk, least(max_kv, p.sk), coalesce(p.sk, max_kv)) as max_k,
            mask,
            window_size,
            top_k
        from (select *, unnest([c_part, g_part]) as p from shared)
        where p.sq > 0
        union all
        select
            trace_id,
            call_no,
            'all' as part,
            coalesce(batch, 1) as n,
            n * n_q as sq,
            n * n_kv as sk,
            n * n_q * n_q as sqsq,
            n * n_q * n_kv as sqsk,
            n_q as max_q,
            n_kv as max_k,
            mask,
            window_size,
            top_k
        from masked
        where not by_load and n_q is not null
    )

select
    trace_id,
    call_no,
    part,
    n,
    sq,
    sk,
    sqsq,
    sqsk,
    max_q,
    max_k,
    coalesce(
        (n = 1 and sk is not null)
        or (sk = sq and sqsq * n = sq * sq)
        or (max_q * n = sq and max_k * n = sk)
        or part = 'all',
        false
    ) as uniform,
    mask,
    window_size,
    top_k
from rows_of
