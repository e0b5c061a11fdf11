-- One row a match of a comparison, as the report shows it: times of a call and their ratio.
-- grain: trace_id, other_trace_id, match_no
--
-- trace_id            VARCHAR  -    trace 1
-- other_trace_id      VARCHAR  -    trace 2
-- match_no            BIGINT   -    longest in trace 1 first
-- operation           VARCHAR  -    operator, else the kernels
-- shape               VARCHAR  -    batch, heads, lengths, head size, types, mask in short
-- phase               VARCHAR  -    prefill, decode, mixed, ...; for training the direction
-- calls               VARCHAR  -    calls in both traces
-- mean_us             DOUBLE   us   a call in trace 1
-- other_mean_us       DOUBLE   us   a call in trace 2, scaled to the work of trace 1
-- time_pct            DOUBLE   pct  trace 2 against trace 1: below 100 it is faster
-- roofline_pct        DOUBLE   pct  trace 1 against its own roofline
-- other_roofline_pct  DOUBLE   pct  trace 2 against its own roofline
-- floor_ratio         DOUBLE   -    part of the ratio of times that GPU and types make
-- quality_ratio       DOUBLE   -    part that kernels make
-- efficiency_pct      DOUBLE   pct  time_pct, at least roofline_pct: what findings count with
-- sum_ms              DOUBLE   ms   all calls in trace 1
-- other_sum_ms        DOUBLE   ms   all calls in trace 2
-- pass_ms             DOUBLE   ms   a pass in trace 1
-- other_pass_ms       DOUBLE   ms   a pass in trace 2
-- difference_ms       DOUBLE   ms   trace 2 scaled to the calls of trace 1, minus trace 1
-- note                VARCHAR  -    what differs besides the time
select
    m.trace_id,
    m.other_trace_id,
    m.match_no,
    coalesce(one.operation, two.operation) as operation,
    coalesce(one.shape, two.shape) as shape,
    coalesce(one.phase, two.phase) as phase,
    concat(
        coalesce(m.n_calls::varchar, '-'), '/', coalesce(m.other_n_calls::varchar, '-')
    ) as calls,
    m.mean_us,
    m.other_mean_us * coalesce(m.work_ratio, 1) as other_mean_us,
    100 * m.time_ratio as time_pct,
    m.roofline_pct,
    m.other_roofline_pct,
    m.floor_ratio,
    m.quality_ratio,
    m.efficiency_pct,
    m.sum_us / 1000 as sum_ms,
    m.other_sum_us / 1000 as other_sum_ms,
    m.pass_us / 1000 as pass_ms,
    m.other_pass_us / 1000 as other_pass_ms,
    m.difference_us / 1000 as difference_ms,
    n.note
from attention_matches as m
join match_notes as n using (trace_id, other_trace_id, match_no)
left join attention_table as one on one.trace_id = m.trace_id and one.op_no = n.op_no
left join attention_table as two on two.trace_id = m.other_trace_id and two.op_no = n.other_op_no
