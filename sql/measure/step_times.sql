-- One row a step that the program marks, with the device work launched inside it, wherever in
-- time that runs: replayed graphs run long after the marker has ended.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id      VARCHAR  -   the trace
-- event_id      BIGINT   -   the outermost marker
-- step_no       BIGINT   -   0-based, in order of time
-- name          VARCHAR  -   name as written
-- marker_ns     BIGINT   ns  length of the marker on the host
-- n_activities  BIGINT   -   activities launched inside it; 0 where the trace ends before them
-- n_kernels     BIGINT   -   kernels among them
-- n_launches    BIGINT   -   host calls that launched them
-- n_via_graph   BIGINT   -   activities of graph launches
-- start_ns      BIGINT   ns  first start; NULL without activities
-- end_ns        BIGINT   ns  last end; NULL without activities
-- busy_ns       BIGINT   ns  union of the activities' intervals
-- sum_dur_ns    BIGINT   ns  sum of their durations
with
    inside as (
        select
            s.trace_id,
            s.event_id,
            a.kind,
            a.start_ns,
            a.end_ns,
            a.dur_ns,
            l.launch_event_id,
            l.via_graph,
            max(a.end_ns) over (
                partition by s.trace_id, s.event_id, a.pid, a.device
                order by a.start_ns, a.gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from launches as l
        join activities as a using (trace_id, event_id)
        asof join
            steps as s
            on s.trace_id = l.trace_id
            and s.pid = l.pid
            and s.tid = l.tid
            and s.start_ns <= l.launch_ns
        where l.launch_ns < s.end_ns
    ),

    measured as (
        select
            trace_id,
            event_id,
            count(*) as n_activities,
            count(*) filter (kind = 'kernel') as n_kernels,
            count(distinct launch_event_id) as n_launches,
            count(*) filter (via_graph) as n_via_graph,
            min(start_ns) as start_ns,
            max(end_ns) as end_ns,
            sum(greatest(end_ns - greatest(start_ns, covered_ns), 0)) as busy_ns,
            sum(dur_ns) as sum_dur_ns
        from inside
        group by trace_id, event_id
    )

select
    s.trace_id,
    s.event_id,
    row_number() over (partition by s.trace_id order by s.start_ns, s.event_id) - 1 as step_no,
    s.name,
    s.end_ns - s.start_ns as marker_ns,
    coalesce(m.n_activities, 0) as n_activities,
    coalesce(m.n_kernels, 0) as n_kernels,
    coalesce(m.n_launches, 0) as n_launches,
    coalesce(m.n_via_graph, 0) as n_via_graph,
    m.start_ns,
    m.end_ns,
    cast(coalesce(m.busy_ns, 0) as bigint) as busy_ns,
    cast(coalesce(m.sum_dur_ns, 0) as bigint) as sum_dur_ns
from steps as s
left join measured as m using (trace_id, event_id)
