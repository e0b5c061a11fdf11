-- One row a visit of a layer and a column of its profile: the sum of durations of the column's
-- categories. Categories in no column make up the last one, Other.
-- grain: trace_id, pass_no, loop_no, layer_no, label
--
-- trace_id    VARCHAR  -   the trace
-- pass_no     BIGINT   -   0-based pass
-- loop_no     BIGINT   -   0-based visit of the layers
-- layer_no    BIGINT   -   0-based layer
-- position    BIGINT   -   order of the columns
-- label       VARCHAR  -   heading of the column
-- sum_dur_ns  BIGINT   ns  sum of durations
-- sum_dur_ms  DOUBLE   ms  the same
with
    labels as (
        select distinct trace_id, position, label
        from trace_columns
        union all
        select distinct trace_id, 1000 as position, 'Other' as label
        from trace_settings
    ),

    sums as (
        select
            k.trace_id,
            k.pass_no,
            k.loop_no,
            k.layer_no,
            coalesce(c.label, 'Other') as label,
            cast(sum(k.sum_dur_ns) as bigint) as sum_dur_ns
        from layer_categories as k
        left join trace_columns as c using (trace_id, category)
        group by all
    )

select
    l.trace_id,
    l.pass_no,
    l.loop_no,
    l.layer_no,
    b.position,
    b.label,
    coalesce(s.sum_dur_ns, 0) as sum_dur_ns,
    coalesce(s.sum_dur_ns, 0) / 1e6 as sum_dur_ms
from layers as l
join labels as b using (trace_id)
left join sums as s using (trace_id, pass_no, loop_no, layer_no, label)
