-- One row a device activity whose launch is in the trace: the host call that shares its
-- correlation id, whatever it is named; where none does, the call at the tail of the flow arrow
-- that ends at it.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- event_id         BIGINT   -   the activity
-- launch_event_id  BIGINT   -   the host call
-- launch_name      VARCHAR  -   its name (cudaLaunchKernel, hipGraphLaunch, ...)
-- pid              VARCHAR  -   host process of the call
-- tid              VARCHAR  -   host thread of the call
-- launch_ns        BIGINT   ns  start of the call
-- delay_ns         BIGINT   ns  activity start minus call start; below 0 where clocks disagree
-- link             VARCHAR  -   correlation or arrow
-- n_in_launch      BIGINT   -   activities of its device that share the call
-- via_graph        BOOLEAN  -   a graph launch, or a call shared by several activities
-- external_id      BIGINT   -   id that the call shares with the operator
with
    linked as (
        select
            a.trace_id,
            a.event_id,
            a.device,
            a.start_ns,
            c.event_id as launch_event_id,
            c.name as launch_name,
            c.pid,
            c.tid,
            c.start_ns as launch_ns,
            c.external_id,
            'correlation' as link
        from activities as a
        join
            launch_calls as c
            on c.trace_id = a.trace_id
            and c.correlation = a.correlation
            and c.rank_label is not distinct from a.rank_label
        union all
        select
            a.trace_id,
            a.event_id,
            a.device,
            a.start_ns,
            e.event_id as launch_event_id,
            e.name as launch_name,
            e.pid,
            e.tid,
            e.ts_ns as launch_ns,
            e.external_id,
            'arrow' as link
        from arrow_launches as l
        join activities as a using (trace_id, event_id)
        join events as e on e.trace_id = l.trace_id and e.event_id = l.launch_event_id
    ),

    shared as (
        select trace_id, launch_event_id, device, count(*) as n_in_launch from linked group by all
    )

select
    l.trace_id,
    l.event_id,
    l.launch_event_id,
    l.launch_name,
    l.pid,
    l.tid,
    l.launch_ns,
    l.start_ns - l.launch_ns as delay_ns,
    l.link,
    s.n_in_launch,
    s.n_in_launch > 1 or contains(lower(l.launch_name), 'graphlaunch') as via_graph,
    l.external_id
from linked as l
join
    shared as s
    on s.trace_id = l.trace_id
    and s.launch_event_id = l.launch_event_id
    and s.device is not distinct from l.device
