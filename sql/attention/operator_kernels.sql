-- One row an operator that is a call of attention and whose kernels ran, with what their names
-- tell.
-- grain: trace_id, operator_event_id
-- keep: yes
--
-- trace_id           VARCHAR  -  the trace of its activities
-- host_trace_id      VARCHAR  -  the trace that holds it
-- operator_event_id  BIGINT   -  the operator
-- n_core             BIGINT   -  kernels that attend
-- has_core           BOOLEAN  -  one of them is known to attend
-- has_gemms          BOOLEAN  -  two or more are products of matrices
-- head_dim           DOUBLE   -  head size
-- n_wide             BIGINT   -  kernels that attend to no cache, nor to compressed keys
-- cache_dtype        VARCHAR  -  type in which the cache is written
-- ran_library        VARCHAR  -  whose they are
-- ran                VARCHAR  -  flash, paged or linear
-- ran_q              VARCHAR  -  type of the query
-- ran_kv             VARCHAR  -  type of the cache
-- ran_o              VARCHAR  -  type of the output
-- ran_mask           VARCHAR  -  causal, window or dense
select
    o.trace_id,
    o.host_trace_id,
    o.operator_event_id,
    count(*) filter (n.role = 'core') as n_core,
    n_core > 0 as has_core,
    count(*) filter (starts_with(k.category, 'gemm')) > 1 as has_gemms,
    max(n.head_dim) filter (n.role = 'core')::double as head_dim,
    count(*) filter (
        n.role = 'core'
        and n.implementation = 'flash'
        and coalesce(n.head_dim_v <= n.head_dim, true)
    ) as n_wide,
    max(n.kv_dtype) filter (n.role = 'kv_write') as cache_dtype,
    max(n.library) filter (n.role = 'core') as ran_library,
    max(n.implementation) filter (n.role = 'core') as ran,
    -- Products of unfused attention tell what fp32 is computed in.
    if(
        not has_core and bool_or(regexp_matches(a.name, 'tf32|s1688gemm')),
        'tf32',
        max(n.q_dtype) filter (n.role = 'core')
    ) as ran_q,
    coalesce(max(n.kv_dtype) filter (n.role = 'core'), if(ran_q = 'tf32', ran_q, null)) as ran_kv,
    max(n.o_dtype) filter (n.role = 'core') as ran_o,
    max(n.mask) filter (n.role = 'core') as ran_mask
from operator_activities as o
join activities as a using (trace_id, event_id)
left join name_classes as k on k.trace_id = a.trace_id and k.name = a.name
left join attention_names as n on n.trace_id = a.trace_id and n.name = a.name
group by o.trace_id, o.host_trace_id, o.operator_event_id
