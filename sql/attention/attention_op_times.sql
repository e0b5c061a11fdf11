-- One row an operation of attention: calls that are alike, how long they took and what they ask
-- for, whatever the GPU.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id         VARCHAR    -      the trace
-- op_no            BIGINT     -      0-based, longest in sum first
-- lead_call_no     BIGINT     -      its first call
-- operator         VARCHAR    -      name of the operator; NULL without one
-- evidence         VARCHAR    -      operator, capture, unfused or kernels
-- phase            VARCHAR    -      prefill, decode, mixed, train_fwd or train_bwd
-- phase_source     VARCHAR    -      what tells the phase
-- layer_class      VARCHAR    -      full, window, cross, ...
-- kernel_names     VARCHAR[]  -      readable names of the kernels that attend, longest first
-- input_dims       VARCHAR    -      input shapes of its first call as JSON text
-- input_types      VARCHAR    -      input types of its first call as JSON text
-- n_calls          BIGINT     -      calls
-- n_passes         BIGINT     -      passes they are in
-- layers           VARCHAR    -      their layers, as 0-23 or 1,3,..,23; NULL: none is known
-- sum_us           DOUBLE     us     sum of the busy times of its calls
-- mean_us          DOUBLE     us     mean busy time of a call
-- std_us           DOUBLE     us     its standard deviation; NULL for one call
-- min_us           DOUBLE     us     shortest
-- max_us           DOUBLE     us     longest
-- core_us          DOUBLE     us     the part of the sum in which kernels attend
-- overhead_us      DOUBLE     us     the rest of it
-- sum_dur_us       DOUBLE     us     sum of durations of its activities
-- flops            DOUBLE     -      FLOPs of all calls that tell
-- bytes            DOUBLE     -      bytes of all calls that tell
-- bytes_pages      DOUBLE     -      the same with whole pages of the cache
-- score_bytes      DOUBLE     bytes  traffic of score matrices besides, of unfused attention
-- pairs_lo         DOUBLE     -      pairs of query and key of a head and call, at least
-- pairs_hi         DOUBLE     -      at most
-- ctx_tokens       DOUBLE     -      query tokens in prefill, mean of its calls
-- gen_tokens       DOUBLE     -      query tokens of generation, mean of its calls
-- ctx_flops        DOUBLE     -      FLOPs of prefill, of all calls
-- gen_flops        DOUBLE     -      FLOPs of generation, of all calls
-- ctx_bytes        DOUBLE     bytes  bytes of prefill, of all calls
-- gen_bytes        DOUBLE     bytes  bytes of generation, of all calls
-- n_requests       DOUBLE     -      requests of a call, mean; NULL where no load is told
-- n_without        BIGINT     -      calls without FLOPs or bytes
-- formula          VARCHAR    -      which formula counts
-- mask_assumption  VARCHAR    -      what is assumed of mask and lengths
-- problem          VARCHAR    -      why numbers are missing, and what would tell
with
    joined as (
        select
            c.*,
            p.op_no,
            p.layer_class,
            w.* exclude (trace_id, call_no, problem),
            l.c_n + l.g_n as n_requests,
            coalesce(w.problem, c.problem) as reason
        from attention_populations as p
        join attention_calls as c using (trace_id, call_no)
        join attention_work as w using (trace_id, call_no)
        left join attention_loads as l using (trace_id, call_no)
    )
select
    j.trace_id,
    j.op_no,
    min(j.call_no) as lead_call_no,
    any_value(j.operator) as operator,
    arg_min(j.evidence, j.call_no) as evidence,
    any_value(j.phase) as phase,
    any_value(j.phase_source) as phase_source,
    any_value(j.layer_class) as layer_class,
    arg_min(j.kernel_names, j.call_no) as kernel_names,
    arg_min(j.input_dims, j.call_no) as input_dims,
    arg_min(j.input_types, j.call_no) as input_types,
    count(*) as n_calls,
    count(distinct j.pass_no) as n_passes,
    any_value(n.layers) as layers,
    sum(j.busy_ns) / 1e3 as sum_us,
    avg(j.busy_ns) / 1e3 as mean_us,
    stddev_samp(j.busy_ns) / 1e3 as std_us,
    min(j.busy_ns) / 1e3 as min_us,
    max(j.busy_ns) / 1e3 as max_us,
    sum(j.core_ns) / 1e3 as core_us,
    sum(j.busy_ns - j.core_ns) / 1e3 as overhead_us,
    sum(j.sum_dur_ns) / 1e3 as sum_dur_us,
    sum(j.flops) as flops,
    sum(j.bytes) as bytes,
    sum(j.bytes_pages) as bytes_pages,
    sum(j.score_bytes) as score_bytes,
    avg(j.pairs_lo) as pairs_lo,
    avg(j.pairs_hi) as pairs_hi,
    avg(j.ctx_tokens) as ctx_tokens,
    avg(j.gen_tokens) as gen_tokens,
    sum(j.ctx_flops) as ctx_flops,
    sum(j.gen_flops) as gen_flops,
    sum(j.ctx_bytes) as ctx_bytes,
    sum(j.gen_bytes) as gen_bytes,
    avg(j.n_requests) as n_requests,
    count(*) - count(j.bytes) as n_without,
    mode(j.formula) as formula,
    mode(j.mask_assumption) as mask_assumption,
    mode(j.reason) as problem
from joined as j
left join attention_op_layers as n using (trace_id, op_no)
group by j.trace_id, j.op_no
