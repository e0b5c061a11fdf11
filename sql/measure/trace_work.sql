-- One row a trace with device activities: how much there is, and how much of it is explained.
-- grain: trace_id
-- keep: yes
--
-- trace_id       VARCHAR  -   the trace
-- n_activities   BIGINT   -   device activities
-- n_selected     BIGINT   -   those inside the selection
-- n_in_layers    BIGINT   -   those with a layer
-- n_linked       BIGINT   -   those whose launch is in the trace
-- sum_dur_ns     BIGINT   ns  sum of durations of the selected activities
-- layers_sum_ns  BIGINT   ns  the part of it in layers
with
    links as (select trace_id, count(*) as n_linked from launches group by trace_id),

    work as (
        select
            a.trace_id,
            count(*) as n_activities,
            count(*) filter (a.selected) as n_selected,
            count(l.layer_no) as n_in_layers,
            cast(coalesce(sum(a.dur_ns) filter (a.selected), 0) as bigint) as sum_dur_ns,
            cast(
                coalesce(sum(a.dur_ns) filter (l.layer_no is not null), 0) as bigint
            ) as layers_sum_ns
        from activities as a
        join activity_layers as l using (trace_id, event_id)
        group by a.trace_id
    )

select
    w.trace_id,
    w.n_activities,
    w.n_selected,
    w.n_in_layers,
    coalesce(l.n_linked, 0) as n_linked,
    w.sum_dur_ns,
    w.layers_sum_ns
from work as w
left join links as l using (trace_id)
