-- One row a distinct kernel, copy or fill name of a trace, with its category and readable name.
-- grain: trace_id, name
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- name             VARCHAR  -   name as the profiler wrote it
-- category         VARCHAR  -   what it does; other where no rule of the profile matches
-- simplified_name  VARCHAR  -   readable name: demangled, template noise cut
-- kind             VARCHAR  -   kernel, copy or fill
-- n_activities     BIGINT   -   how often it ran
-- sum_dur_ns       BIGINT   ns  sum of durations (not busy time)
with
    sums as (
        select
            a.trace_id,
            a.name,
            any_value(c.category) as category,
            min(a.kind) as kind,
            count(*) as n_activities,
            cast(sum(a.dur_ns) as bigint) as sum_dur_ns
        from activities as a
        join name_classes as c using (trace_id, name)
        group by a.trace_id, a.name
    )

select
    trace_id,
    name,
    category,
    {{ simplified_name }} as simplified_name,
    kind,
    n_activities,
    sum_dur_ns
from sums
