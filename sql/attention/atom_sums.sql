-- One row a distinct range name of ATOM that tells sums over its requests, or the key length of
-- each: `prefill[bs=2 tok=64 ctx=[80, 84] sqsq=2048 sqsk=5248 sk=164]`. One named decode that
-- also has prefill requests (p=) is split: those that decode have 1 + spec tokens each.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as written
-- c_n       DOUBLE   -  prefill requests
-- c_sq      DOUBLE   -  sum of their query tokens
-- c_sk      DOUBLE   -  sum of their key tokens, cached and new
-- c_sqsq    DOUBLE   -  sum of squares of query tokens
-- c_sqsk    DOUBLE   -  sum of query tokens times key tokens
-- g_n       DOUBLE   -  generation requests
-- g_sq      DOUBLE   -  as c_sq
-- g_sk      DOUBLE   -  as c_sk
-- g_sqsq    DOUBLE   -  as c_sqsq
-- g_sqsk    DOUBLE   -  as c_sqsk
-- exact     BOOLEAN  -  whether nothing of it is assumed
-- note      VARCHAR  -  what is assumed
with
    words as (
        select
            trace_id,
            name,
            regexp_extract(name, '^(?:eager_)?(prefill|decode|draft)\[', 1) as mode,
            coalesce(try_cast(regexp_extract(name, '\bp=(\d+)', 1) as double), 0) as p,
            coalesce(try_cast(regexp_extract(name, '\bspec=(\d+)', 1) as double), 0) + 1 as each,
            {% for key in ["bs", "tok", "d"] %}
                try_cast(regexp_extract(name, '\b{{ key }}=(\d+)', 1) as double) as {{ key }},
            {% endfor %}
            {% for key in ["sk", "sqsq", "sqsk"] %}
                try_cast(regexp_extract(name, '\b{{ key }}=(\d+)', 1) as double) as told_{{ key }},
            {% endfor %}
            list_transform(
                string_split(nullif(regexp_extract(name, '\bctx=\[([\d, ]+)\]', 1), ''), ','),
                lambda x:try_cast(trim(x) as double)
            ) as lengths,
            if(len(lengths) = bs, list_sum(lengths), null) as list_sk
        from (select distinct trace_id, name from annotations where contains(name, '['))
        where mode <> ''
    ),

    -- A list of key lengths tells all where one request runs, where no prefix is cached, and
    -- where each request has the same number of tokens.
    summed as (
        select
            *,
            if(mode = 'prefill', bs, p) as c_n,
            if(mode = 'prefill', 0, coalesce(d, bs - p)) as g_n,
            told_sk + told_sqsq + told_sqsk is not null as told,
            if(told, told_sk, list_sk) as sk,
            case
                when told
                then told_sqsq
                when p > 0
                then null
                when bs = 1
                then tok * tok
                when tok = list_sk
                then list_sum(list_transform(lengths, lambda x:x * x))
                when mode <> 'prefill' and tok = bs * each
                then tok * each
            end as sqsq,
            case
                when told
                then told_sqsk
                when bs = 1 or sqsq = tok * each
                then list_sk * tok / bs
                else sqsq
            end as sqsk
        from words
        where tok > 0
    ),

    -- Both kinds in one: what decodes has as many tokens a request, so two unknown sums of key
    -- lengths are left, which sqsk = each * g_sk + c_mean * c_sk tells apart.
    parted as (
        select
            *,
            case when c_n = 0 then 0 when g_n = 0 then tok else tok - g_n * each end as c_sq,
            case
                when c_n = 0 then 0 when g_n = 0 then sqsq else sqsq - g_n * each ^ 2
            end as c_sqsq,
            c_sqsq / nullif(c_sq, 0) as c_mean,
            case
                when c_n = 0
                then 0
                when g_n = 0
                then sk
                when c_mean > each
                then greatest(least((sqsk - each * sk) / (c_mean - each), sk - g_n), 0)
            end as c_sk,
            case when g_n = 0 then 0 when c_n = 0 then sqsk else each * (sk - c_sk) end as g_sqsk
        from summed
        where sk + sqsq + sqsk is not null
    )

select
    trace_id,
    name,
    c_n,
    c_sq,
    c_sk,
    c_sqsq,
    sqsk - g_sqsk as c_sqsk,
    g_n,
    tok - c_sq as g_sq,
    sk - c_sk as g_sk,
    sqsq - c_sqsq as g_sqsq,
    g_sqsk,
    g_n = 0 or c_n <= 1 as exact,
    if(exact, null, 'prefill and generation share a range: key lengths are parted') as note
from parted
where c_sq >= 0 and c_sqsq >= 0 and g_sqsk is not null
