-- One row an operation of attention that could take less: what that would be worth, in percent
-- of the wall time of the trace. Where its efficiency is known it could gain all that is missing
-- to the roofline (high), 7/8 or 3/4 of it; where it is not known, or over 110 %, 45, 30 or 15 %
-- of its share are guessed. Below 0.01 % there is no estimate.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id           VARCHAR  -    the trace
-- op_no              BIGINT   -    the operation
-- category           VARCHAR  -    sdpa_fwd or sdpa_bwd
-- operation          VARCHAR  -    what to call it
-- type               VARCHAR  -    kernel_tuning or unmodeled_significant
-- estimate_method    VARCHAR  -    quantified or heuristic
-- impact_score       DOUBLE   -    percent of wall time, rounded to 0.01
-- impact_score_low   DOUBLE   -    at the low end
-- impact_score_high  DOUBLE   -    at the high end
-- efficiency_pct     DOUBLE   pct  roofline over busy time; NULL in a guess
-- bound_type         VARCHAR  -    compute or memory; unmodeled in a guess
-- library            VARCHAR  -    whose kernels they are; Unknown
-- eff_bucket         VARCHAR  -    0-30, 30-60, 60-100 or unknown
-- time_ms            DOUBLE   ms   busy time
-- percent_of_total   DOUBLE   -    its share of the wall time
with
    measured as (
        select
            *,
            efficiency_pct is not null and not anomaly as is_measured,
            if(is_measured, 1 - efficiency_pct / 100, 1) as gap
        from attention_ops
        where sum_us > 0 and pct_of_wall is not null
    )

select
    trace_id,
    op_no,
    if(direction = 'bwd', 'sdpa_bwd', 'sdpa_fwd') as category,
    operation,
    if(is_measured, 'kernel_tuning', 'unmodeled_significant') as type,
    if(is_measured, 'quantified', 'heuristic') as estimate_method,
    round(gap * pct_of_wall * if(is_measured, 0.875, 0.3), 2) as impact_score,
    round(gap * pct_of_wall * if(is_measured, 0.75, 0.15), 2) as impact_score_low,
    round(gap * pct_of_wall * if(is_measured, 1, 0.45), 2) as impact_score_high,
    if(is_measured, efficiency_pct, null) as efficiency_pct,
    if(is_measured, bound, 'unmodeled') as bound_type,
    coalesce(library, 'Unknown') as library,
    case
        when not is_measured
        then 'unknown'
        when efficiency_pct < 30
        then '0-30'
        when efficiency_pct < 60
        then '30-60'
        else '60-100'
    end as eff_bucket,
    sum_us / 1e3 as time_ms,
    pct_of_wall as percent_of_total
from measured
where not is_measured or gap * pct_of_wall >= 0.01
