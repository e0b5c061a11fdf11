-- One row an activity name of a pass, or of all that is selected, with its time: what a person
-- sorts by to see where time goes and which names no rule knows.
-- grain: trace_id, pass_no, name
--
-- trace_id         VARCHAR  -    the trace
-- pass_no          BIGINT   -    the pass; NULL over all that is selected, in passes or not
-- name             VARCHAR  -    name as the profiler wrote it
-- simplified_name  VARCHAR  -    readable name
-- category         VARCHAR  -    what it does; other where no rule of the profile matches
-- n_activities     BIGINT   -    how often it ran
-- sum_dur_ms       DOUBLE   ms   sum of durations (not busy time)
-- share_pct        DOUBLE   pct  share of the sum of durations of the pass or selection
with
    sums as (
        select
            trace_id,
            if(grouping(pass_no) = 1, null, pass_no) as pass_no,
            grouping(pass_no) = 1 as over_all,
            name,
            any_value(category) as category,
            count(*) as n_activities,
            cast(sum(dur_ns) as bigint) as sum_dur_ns
        from placed_activities
        where selected and name is not null
        group by grouping sets ((trace_id, name), (trace_id, pass_no, name))
    )

select
    s.trace_id,
    s.pass_no,
    s.name,
    c.simplified_name,
    s.category,
    s.n_activities,
    s.sum_dur_ns / 1e6 as sum_dur_ms,
    100.0
    * s.sum_dur_ns
    / nullif(sum(s.sum_dur_ns) over (partition by s.trace_id, s.pass_no), 0) as share_pct
from sums as s
left join kernel_categories as c using (trace_id, name)
where s.over_all or s.pass_no is not null
