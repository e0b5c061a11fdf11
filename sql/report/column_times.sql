-- One row a column of a trace's profile in which layers spend time, Other for the categories in no
-- column.
-- grain: trace_id, label
--
-- trace_id    VARCHAR  -   the trace
-- position    BIGINT   -   0-based position of the column; 1000 for Other
-- label       VARCHAR  -   the column
-- sum_dur_ns  BIGINT   ns  sum of durations in layers
with
    sums as (
        select trace_id, category, cast(sum(sum_dur_ns) as bigint) as sum_dur_ns
        from layer_categories
        group by trace_id, category
    )

select
    s.trace_id,
    cast(coalesce(c.position, 1000) as bigint) as position,
    coalesce(c.label, 'Other') as label,
    cast(sum(s.sum_dur_ns) as bigint) as sum_dur_ns
from sums as s
left join trace_columns as c using (trace_id, category)
group by all
