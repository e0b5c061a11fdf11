-- One row a softmax between two products of matrices that fit it: attention without a fused kernel.
-- A router's or a sampler's softmax stands between no such two. Without shapes, it is one between
-- two products of batches.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id   VARCHAR  -   the trace that holds the operators
-- event_id   BIGINT   -   the softmax, or its backward
-- pid        VARCHAR  -   host process
-- tid        VARCHAR  -   host thread
-- direction  VARCHAR  -   fwd or bwd
-- operators  VARCHAR  -   its operators in one word
-- causal     BOOLEAN  -   the softmax leaves out what lies ahead
-- start_ns   BIGINT   ns  start of the first product
-- end_ns     BIGINT   ns  end of the last
-- batch      DOUBLE   -   batch; batch times heads where the softmax does not tell them apart
-- h          DOUBLE   -   heads
-- n_q        DOUBLE   -   query tokens
-- n_kv       DOUBLE   -   key tokens
-- d_qk       DOUBLE   -   head size of query and key
-- d_v        DOUBLE   -   head size of value
-- dtype      VARCHAR  -   type of the products
with
    spans as (
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
            if(len(shape) > 2, shape[-2], arg_min(m, step)) as n_q,
            if(len(shape) > 3, shape[-3], 1) as h,
            any_value(n_kv) as n_kv,
            max(size) filter (is_before) as size_before,
            max(size) filter (not is_before) as size_behind,
            any_value(dtype) as dtype
        from unfused_products
        group by trace_id, event_id
        having bool_or(is_before) and bool_or(not is_before)
    )

select
    trace_id,
    event_id,
    pid,
    tid,
    direction,
    operators,
    causal,
    start_ns,
    end_ns,
    n_rows / nullif(n_q * h, 0) as batch,
    if(n_q is null, null, h) as h,
    n_q,
    n_kv,
    if(direction = 'fwd', size_before, size_behind) as d_qk,
    if(direction = 'fwd', size_behind, size_before) as d_v,
    dtype
from spans
