-- One row a trace with device activities: the kernels that attend by their names, and those of
-- them that no call owns, so that a share of attention can be trusted.
-- grain: trace_id
-- keep: store
--
-- trace_id      VARCHAR    -   the trace
-- n_named       BIGINT     -   kernels that attend by their names
-- n_uncovered   BIGINT     -   those without a call
-- uncovered_ms  DOUBLE     ms  sum of their durations
-- uncovered     VARCHAR[]  -   their readable names, longest in sum first; five at most
with
    named as (
        select
            a.trace_id,
            coalesce(k.simplified_name, a.name) as kernel,
            a.dur_ns,
            c.event_id is null as is_uncovered
        from activities as a
        join attention_names as n using (trace_id, name)
        left join kernel_categories as k using (trace_id, name)
        left join attention_activities as c on c.trace_id = a.trace_id and c.event_id = a.event_id
        where a.selected and n.role in ('core', 'step')
    ),

    sums as (
        select
            trace_id,
            kernel,
            count(*) as n,
            count(*) filter (is_uncovered) as n_uncovered,
            coalesce(sum(dur_ns) filter (is_uncovered), 0) as sum_ns
        from named
        group by trace_id, kernel
    )

select
    t.trace_id,
    cast(coalesce(sum(s.n), 0) as bigint) as n_named,
    cast(coalesce(sum(s.n_uncovered), 0) as bigint) as n_uncovered,
    coalesce(sum(s.sum_ns), 0) / 1e6 as uncovered_ms,
    coalesce(list(s.kernel order by s.sum_ns desc, s.kernel) filter (s.n_uncovered > 0), [])[
        :5
    ] as uncovered
from trace_spans as t
left join sums as s using (trace_id)
group by t.trace_id
