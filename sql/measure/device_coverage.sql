-- One row a device of a trace, in a merged file of a rank: how much of what the file says about
-- its activities could be used.
-- grain: trace_id, pid, device
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- pid              VARCHAR  -   label of the device; can be NULL
-- device           BIGINT   -   the device; can be NULL
-- rank_label       VARCHAR  -   label of its rank in a merged file; NULL in others
-- n_rows           BIGINT   -   rows of the file about kernels, copies and fills
-- n_repeated       BIGINT   -   those that repeat another in everything, counted once
-- n_activities     BIGINT   -   activities
-- n_linked         BIGINT   -   activities whose launch is in the trace
-- n_by_arrow       BIGINT   -   those of them that only a flow arrow links
-- n_via_graph      BIGINT   -   those of them in graph launches
-- n_unlinked       BIGINT   -   activities whose launch is not in the trace
-- n_before_launch  BIGINT   -   activities that start before their launch: clocks disagree
-- avg_delay_ns     DOUBLE   ns  mean time from call to start, without graphs and without those
-- n_without_time   BIGINT   -   activities without a time: in no span, sum or mean
-- n_without_dur    BIGINT   -   activities without a duration, or with one below 0: in no sum
-- n_overruns       BIGINT   -   durations that overrun their stream, counted to the next start
-- n_beside         BIGINT   -   durations beside their stream, counted whole
with
    counted as (
        select
            a.trace_id,
            a.pid,
            a.device,
            any_value(a.rank_label) as rank_label,
            count(*) as n_activities,
            count(l.event_id) as n_linked,
            count(case when l.link = 'arrow' then 1 end) as n_by_arrow,
            count(case when l.via_graph then 1 end) as n_via_graph,
            count(case when l.delay_ns < 0 then 1 end) as n_before_launch,
            avg(case when l.delay_ns >= 0 and not l.via_graph then l.delay_ns end) as avg_delay_ns,
            count(case when a.flaw = 'no_time' then 1 end) as n_without_time,
            count(case when a.flaw in ('no_duration', 'negative') then 1 end) as n_without_dur,
            count(case when a.flaw = 'overrun' then 1 end) as n_overruns,
            count(case when a.flaw = 'beside' then 1 end) as n_beside
        from activities as a
        left join launches as l using (trace_id, event_id)
        group by a.trace_id, a.pid, a.device
    ),

    written as (
        select trace_id, pid, device, count(*) as n_rows
        from device_events
        group by trace_id, pid, device
    )

select
    c.trace_id,
    c.pid,
    c.device,
    c.rank_label,
    w.n_rows,
    w.n_rows - c.n_activities as n_repeated,
    c.n_activities,
    c.n_linked,
    c.n_by_arrow,
    c.n_via_graph,
    c.n_activities - c.n_linked as n_unlinked,
    c.n_before_launch,
    c.avg_delay_ns,
    c.n_without_time,
    c.n_without_dur,
    c.n_overruns,
    c.n_beside
from counted as c
join
    written as w
    on w.trace_id = c.trace_id
    and w.pid is not distinct from c.pid
    and w.device is not distinct from c.device
