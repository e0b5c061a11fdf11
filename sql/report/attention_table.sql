-- One row a population of attention calls, as the report shows it, longest first.
-- grain: trace_id, op_no
--
-- trace_id              VARCHAR  -   the trace
-- op_no                 BIGINT   -   0-based, longest first
-- operation             VARCHAR  -   operator, else the kernels
-- shape                 VARCHAR  -   batch, heads, lengths, head size, types, mask in short
-- phase                 VARCHAR  -   prefill, decode, mixed, ...; for training the direction
-- layers                VARCHAR  -   its layers
-- n_calls               BIGINT   -   calls
-- mean_us               DOUBLE   us  mean busy time of a call
-- sum_ms                DOUBLE   ms  busy time of all
-- busy_pct              DOUBLE   pct  share of the busy time of the trace
-- flops_per_byte        DOUBLE   -   arithmetic intensity
-- bound                 VARCHAR  -   compute or memory
-- achieved              VARCHAR  -   rate in the unit of its bound
-- efficiency_pct        DOUBLE   pct  of the roofline; NULL where unknown
-- floor_efficiency_pct  DOUBLE   pct  of the floor that tiles and launches set as well
-- floor_kind            VARCHAR  -   what sets that floor
-- formula               VARCHAR  -    which formula counts its work
-- note                  VARCHAR  -   what is odd, assumed or not known
select
    trace_id,
    op_no,
    operation,
    concat_ws(
        ' ',
        if(batch > 1, 'B' || batch::bigint, null),
        if(h_kv < h_q, 'H' || h_q::bigint || '/' || h_kv::bigint, 'H' || h_q::bigint),
        case
            when n_kv <> n_q then 'N' || n_q::bigint || 'x' || n_kv::bigint else 'N' || n_q::bigint
        end,
        if(d_v <> d_qk, 'd' || d_qk::bigint || '/' || d_v::bigint, 'd' || d_qk::bigint),
        if(kv_dtype <> q_dtype, q_dtype || '/' || kv_dtype, q_dtype),
        case
            when mask = 'window'
            then concat('window ', window_size::bigint)
            when starts_with(mask, 'causal')
            then 'causal'
            when mask not in ('dense', 'unknown')
            then mask
        end
    ) as shape,
    coalesce(phase, direction) as phase,
    layers,
    n_calls,
    mean_us,
    sum_us / 1000 as sum_ms,
    pct_of_busy as busy_pct,
    flops_per_byte,
    bound,
    if(
        bound = 'compute',
        printf('%.1f TFLOPS', tflops),
        if(bound = 'memory', printf('%.2f TB/s', tb_s), null)
    ) as achieved,
    efficiency_pct,
    floor_efficiency_pct,
    floor_kind,
    formula,
    concat_ws(
        '; ',
        if(
            anomaly, printf('over the roofline: check %s', coalesce(mask_assumption, 'shape')), null
        ),
        problem
    ) as note
from attention_ops
