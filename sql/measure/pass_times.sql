-- One row a pass: its activities' times. Busy is the length of the union of their intervals.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id        VARCHAR  -   the trace
-- pass_no         BIGINT   -   the pass
-- first_event_id  BIGINT   -   first activity by time
-- last_event_id   BIGINT   -   last activity by time
-- start_ns        BIGINT   ns  first start
-- end_ns          BIGINT   ns  last end
-- busy_ns         BIGINT   ns  union of the activities' intervals
-- sum_dur_ns      BIGINT   ns  sum of the activities' durations
-- n_activities    BIGINT   -   activities
with
    own as (
        select
            *,
            max(end_ns) over (
                partition by trace_id, pass_no
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from placed_activities
        where pass_no is not null
    )

select
    trace_id,
    pass_no,
    arg_min(event_id, gpu_index) as first_event_id,
    arg_max(event_id, gpu_index) as last_event_id,
    min(start_ns) as start_ns,
    max(end_ns) as end_ns,
    cast(
        sum(greatest(end_ns - greatest(start_ns, coalesce(covered_ns, start_ns)), 0)) as bigint
    ) as busy_ns,
    cast(sum(dur_ns) as bigint) as sum_dur_ns,
    count(*) as n_activities
from own
group by trace_id, pass_no
