-- One row a product of matrices directly before or behind a softmax that fits it, so that they are
-- attention together. Without shapes it is a product of batches.
-- grain: trace_id, event_id, step
-- keep: yes
--
-- trace_id   VARCHAR   -   the trace that holds the operators
-- event_id   BIGINT    -   the softmax, or its backward
-- step       INTEGER   -   products between, and this one: up to 0 before it, from 1 behind it
-- pid        VARCHAR   -   host process
-- tid        VARCHAR   -   host thread
-- kind       VARCHAR   -   fwd or bwd
-- name       VARCHAR   -   the softmax
-- product    VARCHAR   -   the product
-- is_before  BOOLEAN   -   it stands before the softmax
-- start_ns   BIGINT    ns  its start
-- end_ns     BIGINT    ns  its end
-- dims       DOUBLE[]  -   shape of what the softmax takes
-- n_rows     DOUBLE    -   queries of all heads and batches
-- n_kv       DOUBLE    -   key tokens
-- b          DOUBLE    -   its matrices
-- m          DOUBLE    -   rows of its first factor
-- size       DOUBLE    -   head size in it
-- dtype      VARCHAR   -   type of its factors
with
    softmaxes as (select *, unnest([-2, -1, 0, 1, 2]) as step from unfused_softmaxes),

    beside as (
        select
            s.* exclude (start_ns),
            s.step < 1 as is_before,
            p.start_ns,
            p.end_ns,
            p.b,
            p.m,
            p.dtype,
            p.name as product,
            case
                when p.k is null and s.n_kv is null
                then null
                -- Queries times keys; backward, gradient times values.
                when is_before and p.b * p.m = s.n_rows and p.n = s.n_kv
                then p.k
                -- Weights times values; backward, gradient times keys.
                when not is_before and p.b * p.m = s.n_rows and p.k = s.n_kv
                then p.n
                -- The same, transposed; backward, the gradient of keys.
                when not is_before and p.b * p.n = s.n_rows and p.k = s.n_kv and s.kind = 'fwd'
                then p.m
                when not is_before and p.b * p.k = s.n_rows and p.n = s.n_kv and s.kind = 'bwd'
                then p.m
                when is_before and p.b * p.k = s.n_rows and p.m = s.n_kv and s.kind = 'bwd'
                then p.n
                else -1
            end as size
        from softmaxes as s
        join
            unfused_steps as p
            on p.trace_id = s.trace_id
            and p.pid = s.pid
            and p.tid = s.tid
            and p.number = s.number + s.step
            and p.kind = 'product'
        where
            coalesce(p.start_ns >= s.after_ns, true)
            and coalesce(p.end_ns <= s.before_ns, true)
            and if(is_before, p.end_ns <= s.start_ns, p.start_ns >= s.start_ns)
            and (s.kind = 'bwd' or s.step < 2)
            and (s.kind = 'fwd' or s.step > -2)
    )

-- Forward, of several that fit the nearest is the one.
select
    trace_id,
    event_id,
    step,
    pid,
    tid,
    kind,
    name,
    product,
    is_before,
    start_ns,
    end_ns,
    dims,
    n_rows,
    n_kv,
    b,
    m,
    size,
    dtype
from beside
where size > 0 or (size is null and product <> 'aten::mm' and (step in (0, 1) or kind = 'bwd'))
qualify
    kind = 'bwd'
    or row_number() over (partition by trace_id, event_id, is_before order by abs(step)) = 1
