-- One row a side of a match: what its operations in one trace take together.
-- grain: trace_id, other_trace_id, group_key, side_no
-- keep: session
--
-- trace_id        VARCHAR   -    trace 1
-- other_trace_id  VARCHAR   -    trace 2
-- group_key       UBIGINT   -    equal in a match
-- side_no         INTEGER   -    1 or 2: whose operations they are
-- level           BIGINT    -    which key is equal; NULL where the other side has nothing
-- by_load         BOOLEAN   -    lengths differ from call to call
-- op_nos          BIGINT[]  -    the operations
-- n_calls         BIGINT    -    calls
-- n_passes        BIGINT    -    passes with such calls
-- sum_us          DOUBLE    us   busy time
-- mean_us         DOUBLE    us   busy time of a call
-- call_work       DOUBLE    -    FLOPs of a call, tokens of one that only writes a cache, or NULL
-- roofline_pct    DOUBLE    pct  time at the roofline over time, of calls that have one
-- pct_of_wall     DOUBLE    -    share of the wall time of the trace in percent
select
    g.trace_id,
    g.other_trace_id,
    g.group_key,
    g.side_no,
    any_value(g.level) as level,
    bool_or(g.by_load) as by_load,
    list(g.op_no order by g.op_no) as op_nos,
    sum(o.n_calls)::bigint as n_calls,
    max(o.n_passes) as n_passes,
    sum(o.sum_us) as sum_us,
    sum(o.sum_us) / sum(o.n_calls) as mean_us,
    case
        when bool_and(o.implementation = 'cache' and o.n_q is not null)
        then sum(o.n_q * coalesce(o.batch, 1) * o.n_calls) / sum(o.n_calls)
        when count(o.flops) = count(*)
        then sum(o.flops) / sum(o.n_calls)
    end as call_work,
    -- An impossible share proves nothing, least of all a floor.
    sum(o.roofline_us) filter (not o.anomaly) / nullif(
        sum(o.roofline_us / nullif(o.efficiency_pct, 0)) filter (not o.anomaly), 0
    ) as roofline_pct,
    sum(o.pct_of_wall) as pct_of_wall
from comparison_groups as g
join
    attention_ops as o
    on o.trace_id = if(g.side_no = 1, g.trace_id, g.other_trace_id)
    and o.op_no = g.op_no
group by g.trace_id, g.other_trace_id, g.group_key, g.side_no
