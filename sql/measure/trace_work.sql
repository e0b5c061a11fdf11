-- One row a trace with device activities: how much there is, and how much of it is explained.
-- grain: trace_id
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- n_activities     BIGINT   -   device activities
-- n_selected       BIGINT   -   those inside the selection
-- n_in_layers      BIGINT   -   those with a layer
-- n_linked         BIGINT   -   those whose launch is in the trace
-- n_before_launch  BIGINT   -   those of them that start before it
-- n_without_time   BIGINT   -   activities without a time
-- n_without_dur    BIGINT   -   activities without a duration, or with one below 0
-- n_overruns       BIGINT   -   durations that overrun their stream, counted to the next start
-- n_beside         BIGINT   -   durations beside their stream, counted whole
-- n_repeated       BIGINT   -   rows of the file that repeat an activity
-- sum_dur_ns       BIGINT   ns  sum of durations of the selected activities
-- raw_sum_dur_ns   BIGINT   ns  the same as the file has them, none below 0
-- layers_sum_ns    BIGINT   ns  the part of sum_dur_ns in layers
with
    links as (
        select
            trace_id,
            count(*) as n_linked,
            count(case when delay_ns < 0 then 1 end) as n_before_launch
        from launches
        group by trace_id
    ),

    written as (select trace_id, count(*) as n_rows from device_events group by trace_id),

    work as (
        select
            a.trace_id,
            count(*) as n_activities,
            count(*) filter (a.selected) as n_selected,
            count(l.layer_no) as n_in_layers,
            count(case when a.flaw = 'no_time' then 1 end) as n_without_time,
            count(case when a.flaw in ('no_duration', 'negative') then 1 end) as n_without_dur,
            count(case when a.flaw = 'overrun' then 1 end) as n_overruns,
            count(case when a.flaw = 'beside' then 1 end) as n_beside,
            sum(if(a.selected, a.dur_ns, 0)) as sum_dur_ns,
            sum(if(a.selected, greatest(a.raw_dur_ns, 0), 0)) as raw_sum_dur_ns,
            sum(if(l.layer_no is null, 0, a.dur_ns)) as layers_sum_ns
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
    coalesce(l.n_before_launch, 0) as n_before_launch,
    w.n_without_time,
    w.n_without_dur,
    w.n_overruns,
    w.n_beside,
    r.n_rows - w.n_activities as n_repeated,
    cast(coalesce(w.sum_dur_ns, 0) as bigint) as sum_dur_ns,
    cast(coalesce(w.raw_sum_dur_ns, 0) as bigint) as raw_sum_dur_ns,
    cast(coalesce(w.layers_sum_ns, 0) as bigint) as layers_sum_ns
from work as w
join written as r using (trace_id)
left join links as l using (trace_id)
