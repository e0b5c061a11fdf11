-- One row a finding: operations of attention that are bound alike, by one library and equally far
-- from the roofline; unknown ones by name. Together they must be worth 0.5 % of the wall time.
-- grain: trace_id, rank
-- keep: store
--
-- trace_id           VARCHAR   -   the trace
-- rank               BIGINT    -   1-based, what is worth most first
-- category           VARCHAR   -   sdpa_fwd or sdpa_bwd
-- bound_type         VARCHAR   -   compute, memory or unmodeled
-- library            VARCHAR   -   whose kernels they are; Unknown
-- eff_bucket         VARCHAR   -   0-30, 30-60, 60-100 or unknown
-- estimate_method    VARCHAR   -   quantified or heuristic
-- impact_score       DOUBLE    -   percent of wall time: sum of its members
-- impact_score_low   DOUBLE    -   at the low end
-- impact_score_high  DOUBLE    -   at the high end
-- n_members          BIGINT    -   operations
-- op_nos             BIGINT[]  -   their numbers, what is worth most first
-- time_ms            DOUBLE    ms  their busy time
-- percent_of_total   DOUBLE    -   its share of the wall time
with
    grouped as (
        select
            trace_id,
            category,
            bound_type,
            arg_max(library, (impact_score, - op_no)) as library,
            eff_bucket,
            estimate_method,
            round(sum(impact_score), 2) as impact_score,
            round(sum(impact_score_low), 2) as impact_score_low,
            round(sum(impact_score_high), 2) as impact_score_high,
            count(*) as n_members,
            list(op_no order by impact_score desc, op_no) as op_nos,
            sum(time_ms) as time_ms,
            sum(percent_of_total) as percent_of_total
        from attention_estimates
        group by
            trace_id,
            category,
            bound_type,
            eff_bucket,
            estimate_method,
            if(estimate_method = 'heuristic', operation, library)
        having round(sum(impact_score), 2) >= 0.5
    )

select
    trace_id,
    row_number() over (
        partition by trace_id order by impact_score desc, category, op_nos[1]
    ) as rank,
    * exclude (trace_id)
from grouped
