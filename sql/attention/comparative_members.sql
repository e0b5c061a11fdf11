-- One row a match that is part of a finding of a comparison.
-- grain: trace_id, other_trace_id, match_no
-- keep: session
--
-- trace_id           VARCHAR  -  trace 1
-- other_trace_id     VARCHAR  -  trace 2
-- rank               BIGINT   -  the finding
-- match_no           BIGINT   -  the match
-- op_no              BIGINT   -  operation of trace 1 that stands for it
-- impact_score       DOUBLE   -  percent of the wall time of trace 1, the middle
-- impact_score_low   DOUBLE   -  the low end
-- impact_score_high  DOUBLE   -  the high end
select
    e.trace_id,
    e.other_trace_id,
    f.rank,
    e.match_no,
    e.op_no,
    e.impact_score,
    e.impact_score_low,
    e.impact_score_high
from comparative_estimates as e
join comparative_findings as f using (trace_id, other_trace_id, direction, bound_type, library)
