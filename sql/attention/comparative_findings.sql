-- One row a finding of a comparison: matches of one direction, bound and library in trace 1 that
-- would gain at least half a percent of its wall time by being like trace 2.
-- grain: trace_id, other_trace_id, rank
-- keep: session
--
-- trace_id           VARCHAR  -  trace 1
-- other_trace_id     VARCHAR  -  trace 2
-- rank               BIGINT   -  from 1, most impact first
-- direction          VARCHAR  -  fwd or bwd
-- bound_type         VARCHAR  -  compute, memory or unknown
-- library            VARCHAR  -  whose kernels they are; Unknown where names do not tell
-- eff_bucket         VARCHAR  -  all: shares of another trace's time are not sorted into ranges
-- estimate_method    VARCHAR  -  quantified
-- impact_score       DOUBLE   -  percent of the wall time of trace 1, the middle
-- impact_score_low   DOUBLE   -  the low end
-- impact_score_high  DOUBLE   -  the high end
-- n_members          BIGINT   -  matches
with
    summed as (
        select
            trace_id,
            other_trace_id,
            direction,
            bound_type,
            library,
            round(sum(impact_score), 2) as impact_score,
            round(sum(impact_score_low), 2) as impact_score_low,
            round(sum(impact_score_high), 2) as impact_score_high,
            count(*) as n_members
        from comparative_estimates
        group by trace_id, other_trace_id, direction, bound_type, library
    )

select
    trace_id,
    other_trace_id,
    row_number() over (
        partition by trace_id, other_trace_id
        order by impact_score desc, direction desc, bound_type, library
    ) as rank,
    direction,
    bound_type,
    library,
    'all' as eff_bucket,
    'quantified' as estimate_method,
    impact_score,
    impact_score_low,
    impact_score_high,
    n_members
from summed
where impact_score >= 0.5
