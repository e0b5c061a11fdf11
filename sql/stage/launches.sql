-- One row a device activity whose launch is in the trace: who shares its correlation id on
-- the host, whatever the call is named.
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
-- delay_ns         BIGINT   ns  activity start minus call start; negative values are kept
-- n_in_launch      BIGINT   -   activities that share the call
-- via_graph        BOOLEAN  -   a graph launch, or a call shared by several activities
with
    calls as (
        select
            trace_id,
            correlation,
            min(event_id) as launch_event_id,
            arg_min(name, event_id) as launch_name,
            arg_min(pid, event_id) as pid,
            arg_min(tid, event_id) as tid,
            arg_min(ts_ns, event_id) as launch_ns
        from events
        where
            ph = 'X'
            and correlation > 0
            and ts_ns is not null
            and lower(cat) not in ('kernel', 'gpu_memcpy', 'memcpy', 'gpu_memset', 'memset')
            and cat not in ('cuda_sync', 'gpu_user_annotation')
        group by trace_id, correlation
    ),

    shared as (
        select trace_id, correlation, count(*) as n_in_launch
        from activities
        where correlation is not null
        group by trace_id, correlation
    )

select
    a.trace_id,
    a.event_id,
    c.launch_event_id,
    c.launch_name,
    c.pid,
    c.tid,
    c.launch_ns,
    a.start_ns - c.launch_ns as delay_ns,
    s.n_in_launch,
    s.n_in_launch > 1 or contains(lower(c.launch_name), 'graphlaunch') as via_graph
from activities as a
join calls as c using (trace_id, correlation)
join shared as s using (trace_id, correlation)
