-- One row a softmax between two products of matrices that fit it: attention without a fused kernel.
-- A router's or a sampler's softmax stands between no such two. Without shapes, it is one between
-- two products of batches.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id   VARCHAR   -   the trace that holds the operators
-- event_id   BIGINT    -   the softmax, or its backward
-- pid        VARCHAR   -   host process
-- tid        VARCHAR   -   host thread
-- direction  VARCHAR   -   fwd or bwd
-- operators  VARCHAR   -   its operators in one word
-- causal     BOOLEAN   -   the softmax leaves out what lies ahead
-- start_ns   BIGINT    ns  start of the first product
-- end_ns     BIGINT    ns  end of the last
-- shape      DOUBLE[]  -   shape of what the softmax takes
-- n_rows     DOUBLE    -   queries of all heads and batches
-- b          DOUBLE    -   matrices of the first product
-- m          DOUBLE    -   rows of its first factor
-- n_kv       DOUBLE    -   key tokens
-- d_qk       DOUBLE    -   head size of query and key
-- d_v        DOUBLE    -   head size of value
-- dtype      VARCHAR   -   type of the products
select
    trace_id,
    event_id,
    any_value(pid) as pid,
    any_value(tid) as tid,
    any_value(kind) as direction,
    concat_ws(
        ' + ',
        replace(arg_min(product, step), 'aten::', ''),
        replace(any_value(name), 'aten::', ''),
        replace(arg_max(product, step), 'aten::', '')
    ) as operators,
    any_value(contains(name, 'UpperTriang')) as causal,
    min(start_ns) as start_ns,
    max(end_ns) as end_ns,
    any_value(dims) as shape,
    any_value(n_rows) as n_rows,
    arg_min(b, step) as b,
    arg_min(m, step) as m,
    any_value(n_kv) as n_kv,
    max(size) filter (is_before = (kind = 'fwd')) as d_qk,
    max(size) filter (is_before = (kind = 'bwd')) as d_v,
    any_value(dtype) as dtype
from unfused_products
group by trace_id, event_id
having bool_or(is_before) and bool_or(not is_before)
-- Of softmaxes that share a product the last one is the call.
qualify
    row_number() over (
        partition by trace_id, any_value(pid), any_value(tid), min(start_ns) order by event_id desc
    )
    = 1
