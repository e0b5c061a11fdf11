-- One row a distinct kernel, copy or fill name of a trace, with its category.
-- grain: trace_id, name
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- name             VARCHAR  -   name as the profiler wrote it
-- category         VARCHAR  -   what it does; other where no rule of the profile matches
-- simplified_name  VARCHAR  -   readable name
-- kind             VARCHAR  -   kernel, copy or fill
-- n_activities     BIGINT   -   how often it ran
-- sum_dur_ns       BIGINT   ns  sum of durations (not busy time)
select
    a.trace_id,
    a.name,
    any_value(c.category) as category,
    any_value(c.simplified_name) as simplified_name,
    min(a.kind) as kind,
    count(*) as n_activities,
    cast(sum(a.dur_ns) as bigint) as sum_dur_ns
from activities as a
join trace_settings as s using (trace_id)
join name_classes as c on c.profile = s.profile and c.name = a.name
group by a.trace_id, a.name
