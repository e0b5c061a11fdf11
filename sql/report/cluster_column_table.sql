-- One row a layer type of a pass and a column of the profile: the column's share of the type's sum
-- of durations.
-- grain: trace_id, pass_no, layer_type, label
--
-- trace_id    VARCHAR  -    the trace
-- pass_no     BIGINT   -    0-based pass
-- layer_type  VARCHAR  -    the type
-- position    BIGINT   -    order of the columns
-- label       VARCHAR  -    heading of the column
-- share_pct   DOUBLE   pct  share of the sum of durations of the type's complete layers
select
    c.trace_id,
    c.pass_no,
    l.layer_type,
    c.position,
    c.label,
    100.0
    * sum(c.sum_dur_ns)
    / nullif(
        sum(sum(c.sum_dur_ns)) over (partition by c.trace_id, c.pass_no, l.layer_type), 0
    ) as share_pct
from layer_column_table as c
join layers as l using (trace_id, pass_no, loop_no, layer_no)
where l.complete
group by c.trace_id, c.pass_no, l.layer_type, c.position, c.label
