-- One row a sum over a comparison: what both traces have, and what one has alone.
-- grain: trace_id, other_trace_id, position
--
-- trace_id        VARCHAR  -    trace 1
-- other_trace_id  VARCHAR  -    trace 2
-- position        INTEGER  -    order in the report
-- part            VARCHAR  -    in both, only in trace 1, only in trace 2
-- n_matches       BIGINT   -    matches
-- sum_ms          DOUBLE   ms   busy time in trace 1; NULL where it has none of it
-- other_sum_ms    DOUBLE   ms   busy time in trace 2; NULL where it has none of it
-- scaled_ms       DOUBLE   ms   trace 2 for the calls and the work of trace 1
-- time_pct        DOUBLE   pct  scaled_ms against sum_ms: below 100 trace 2 is faster
select
    trace_id,
    other_trace_id,
    case when level is not null then 1 when op_nos is not null then 2 else 3 end as position,
    ['in both', 'only in trace 1', 'only in trace 2'][position] as part,
    count(*) as n_matches,
    sum(sum_us) / 1000 as sum_ms,
    sum(other_sum_us) / 1000 as other_sum_ms,
    sum(other_scaled_us) / 1000 as scaled_ms,
    100 * sum(other_scaled_us) / nullif(sum(sum_us), 0) as time_pct
from attention_matches
group by trace_id, other_trace_id, position
