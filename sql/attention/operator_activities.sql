-- One row a device activity that an attention operator launched: its launch, or where that is not
-- in the trace its operator, lies inside of it on its thread. Replays of a graph are told apart.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id           VARCHAR  -  the trace
-- event_id           BIGINT   -  the activity
-- host_trace_id      VARCHAR  -  the trace that holds the operator
-- operator_event_id  BIGINT   -  the operator
-- replay             BIGINT   -  correlation of the graph launch; 0 outside of graphs
with
    launched as (
        select
            o.trace_id,
            o.event_id,
            o.host_trace_id,
            o.pid,
            o.tid,
            o.launch_ns,
            if(o.source = 'capture', coalesce(a.correlation, 0), 0) as replay
        from activity_origins as o
        join activities as a using (trace_id, event_id)
        union all
        select
            a.trace_id, a.event_id, a.trace_id as host_trace_id, e.pid, e.tid, e.ts_ns, 0 as replay
        from activities as a
        anti join activity_origins as k using (trace_id, event_id)
        join
            operators as o
            on o.trace_id = a.trace_id
            and o.external_id = a.external_id
            and o.rank_label is not distinct from a.rank_label
        join events as e on e.trace_id = o.trace_id and e.event_id = o.event_id
    ),

    owned as (
        select
            l.trace_id,
            l.event_id,
            l.host_trace_id,
            c.event_id as operator_event_id,
            l.replay,
            c.needs_core
        from launched as l
        asof join
            attention_operators as c
            on c.trace_id = l.host_trace_id
            and c.pid = l.pid
            and c.tid = l.tid
            and c.start_ns <= l.launch_ns
        where l.launch_ns < c.end_ns
    ),

    -- What only sounds like attention is a call where a kernel proves it.
    proven as (
        select distinct o.trace_id, o.host_trace_id, o.operator_event_id
        from owned as o
        join activities as a using (trace_id, event_id)
        join attention_names as n on n.trace_id = a.trace_id and n.name = a.name
        where o.needs_core and n.role = 'core'
    )

select o.trace_id, o.event_id, o.host_trace_id, o.operator_event_id, o.replay
from owned as o
left join proven as p using (trace_id, host_trace_id, operator_event_id)
where not o.needs_core or p.trace_id is not null
