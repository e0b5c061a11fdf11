-- One row a population of attention calls, as the report shows it, longest first.
-- grain: trace_id, op_no
--
-- trace_id              VARCHAR  -   the trace
-- op_no                 BIGINT   -   0-based, longest first
-- operation             VARCHAR  -   operator, else the kernels
-- shape                 VARCHAR  -   batch, heads, lengths (T: packed), head size, types, mask
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
    -- Sizes may be any number that a file has: none is cast to an integer, none fills a line.
    concat_ws(
        ' ',
        if(batch > 1, printf('B%.12g', round(batch)), null),
        if(h_kv < h_q, printf('H%.12g/%.12g', h_q, h_kv), printf('H%.12g', round(h_q))),
        case
            when packed
            then printf('T%.12g', round(n_q))
            when n_kv <> n_q
            then printf('N%.12gx%.12g', round(n_q), round(n_kv))
            else printf('N%.12g', round(n_q))
        end,
        if(d_v <> d_qk, printf('d%.12g/%.12g', d_qk, d_v), printf('d%.12g', round(d_qk))),
        if(kv_dtype <> q_dtype, q_dtype || '/' || kv_dtype, q_dtype),
        case
            when mask = 'window'
            then coalesce(printf('window %.12g', round(window_size)), 'window')
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
        printf(if(tflops < 1e6, '%.1f TFLOPS', '%.3g TFLOPS'), tflops),
        if(bound = 'memory', printf('%.2f TB/s', tb_s), null)
    ) as achieved,
    -- What is no efficiency but an error of millions of percent is named in the note alone.
    if(efficiency_pct < 1e6, efficiency_pct, null) as efficiency_pct,
    if(floor_efficiency_pct < 1e6, floor_efficiency_pct, null) as floor_efficiency_pct,
    floor_kind,
    formula,
    concat_ws('; ', 'assumed: ' || mask_assumption, problem) as note
from attention_ops
