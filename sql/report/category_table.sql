-- One row a category of a pass, or of all that is selected: how much time goes into what.
-- grain: trace_id, pass_no, category
--
-- trace_id      VARCHAR  -    the trace
-- pass_no       BIGINT   -    the pass; NULL over all that is selected, in passes or not
-- category      VARCHAR  -    what its kernels do
-- n_activities  BIGINT   -    how often they ran
-- n_names       BIGINT   -    distinct names among them
-- sum_dur_ms    DOUBLE   ms   sum of durations (not busy time)
-- share_pct     DOUBLE   pct  share of the sum of durations of the pass or selection
-- longest       VARCHAR  -    readable names of the three that take most, longest first
with
    named as (
        select
            trace_id,
            pass_no,
            category,
            simplified_name,
            count(*) as n_names,
            cast(sum(n_activities) as bigint) as n_activities,
            sum(sum_dur_ms) as sum_dur_ms,
            sum(share_pct) as share_pct
        from kernel_name_table
        group by trace_id, pass_no, category, simplified_name
    )

select
    trace_id,
    pass_no,
    category,
    cast(sum(n_activities) as bigint) as n_activities,
    cast(sum(n_names) as bigint) as n_names,
    sum(sum_dur_ms) as sum_dur_ms,
    sum(share_pct) as share_pct,
    array_to_string(
        list_slice(list(simplified_name order by sum_dur_ms desc, simplified_name), 1, 3), ', '
    ) as longest
from named
group by trace_id, pass_no, category
