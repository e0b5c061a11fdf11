-- One row a softmax that may be a step of attention without a fused kernel, forward or backward,
-- with its shape and the time within which its products stand.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id    VARCHAR   -   the trace that holds the operators
-- event_id    BIGINT    -   the softmax, or its backward
-- pid         VARCHAR   -   host process
-- tid         VARCHAR   -   host thread
-- kind        VARCHAR   -   fwd or bwd
-- name        VARCHAR   -   its name
-- number      BIGINT    -   products of its thread before it
-- start_ns    BIGINT    ns  its start
-- after_ns    BIGINT    ns  end of the last softmax before that a product parts from it
-- before_ns   BIGINT    ns  start of the first one behind, alike
-- dims        DOUBLE[]  -   shape of what it takes; NULL where only products tell
-- n_rows      DOUBLE    -   queries of all heads and batches
-- n_kv        DOUBLE    -   key tokens
select
    s.trace_id,
    s.event_id,
    s.pid,
    s.tid,
    s.kind,
    s.name,
    s.number,
    s.start_ns,
    -- Two of the same scores, along each of their dimensions, have a product in common.
    max(s.end_ns) over (in_thread range between unbounded preceding and 1 preceding) as after_ns,
    min(s.start_ns) over (in_thread range between 1 following and unbounded following) as before_ns,
    s.dims,
    -- A compiled one has the shape of the product before it.
    coalesce(list_product(s.dims[1:len(s.dims) - 1]), p.b * p.m) as n_rows,
    coalesce(s.dims[-1], p.n) as n_kv
from unfused_steps as s
left join
    unfused_steps as p
    on p.trace_id = s.trace_id
    and p.pid = s.pid
    and p.tid = s.tid
    and p.number = s.number
    and p.kind = 'product'
    and s.kind = 'fwd'
where s.kind <> 'product'
window in_thread as (partition by s.trace_id, s.pid, s.tid order by s.number)
