-- One row an operation of attention that a finding is about.
-- grain: trace_id, rank, op_no
-- keep: store
--
-- trace_id           VARCHAR  -    the trace
-- rank               BIGINT   -    the finding
-- position           BIGINT   -    0-based in the finding, what is worth most first
-- op_no              BIGINT   -    the operation
-- category           VARCHAR  -    sdpa_fwd or sdpa_bwd
-- operation          VARCHAR  -    what to call it
-- type               VARCHAR  -    kernel_tuning or unmodeled_significant
-- estimate_method    VARCHAR  -    quantified or heuristic
-- impact_score       DOUBLE   -    percent of wall time
-- impact_score_low   DOUBLE   -    at the low end
-- impact_score_high  DOUBLE   -    at the high end
-- efficiency_pct     DOUBLE   pct  roofline over busy time
-- bound_type         VARCHAR  -    compute, memory or unmodeled
-- library            VARCHAR  -    whose kernels they are
-- time_ms            DOUBLE   ms   busy time
-- percent_of_total   DOUBLE   -    its share of the wall time
-- cause              VARCHAR  -    what most likely keeps it from its roofline
select
    f.trace_id,
    f.rank,
    cast(list_position(f.op_nos, e.op_no) - 1 as bigint) as position,
    e.op_no,
    e.category,
    e.operation,
    e.type,
    e.estimate_method,
    e.impact_score,
    e.impact_score_low,
    e.impact_score_high,
    e.efficiency_pct,
    e.bound_type,
    e.library,
    e.time_ms,
    e.percent_of_total,
    c.cause
from (select *, unnest(op_nos) as op_no from attention_findings) as f
join attention_estimates as e using (trace_id, op_no)
join attention_causes as c using (trace_id, op_no)
