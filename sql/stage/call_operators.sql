-- One row a host call that launches activities and whose operator no id tells: the innermost
-- one open at the middle of the call, so that ranges which bleed into each other by less than
-- half a call do no harm. The depth of an operator is counted, not walked: n begins less the
-- ends before.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id           VARCHAR  -  the trace
-- event_id           BIGINT   -  the host call
-- operator_event_id  BIGINT   -  the operator
with
    asked as (
        select distinct
            o.host_trace_id as trace_id,
            e.event_id,
            e.pid,
            e.tid,
            e.ts_ns + divide(greatest(coalesce(e.dur_ns, 0), 0), 2) as middle_ns
        from activity_origins as o
        join timed_events as e on e.trace_id = o.host_trace_id and e.event_id = o.host_event_id
        anti join
            operators as p
            on p.trace_id = o.host_trace_id
            and p.external_id = o.external_id
            and p.rank_label is not distinct from o.rank_label
    ),

    spans as (
        select trace_id, pid, tid, event_id, ts_ns as start_ns, ts_ns + dur_ns as end_ns
        from timed_events
        where is_operator(cat) and dur_ns > 0
    ),

    edges as (
        select *, start_ns as at_ns, 1 as step
        from spans
        union all
        select *, end_ns as at_ns, -1 as step
        from spans
    ),

    levels as (
        select
            *,
            sum(step) over in_thread as depth,
            lead(at_ns) over in_thread is distinct from at_ns as is_last
        from edges
        window
            in_thread as (
                partition by trace_id, pid, tid order by at_ns, step, end_ns desc, event_id
            )
    ),

    deep as (
        select a.*, d.depth
        from asked as a
        asof join
            (from levels where is_last) as d
            on d.trace_id = a.trace_id
            and d.pid = a.pid
            and d.tid = a.tid
            and d.at_ns <= a.middle_ns
        where d.depth > 0
    ),

    begun as (from levels where step = 1)

select
    d.trace_id,
    d.event_id,
    -- Where operators cross, depths do not tell: then it is the last one begun, if it is open.
    case
        when n.end_ns > d.middle_ns then n.event_id when l.end_ns > d.middle_ns then l.event_id
    end as operator_event_id
from deep as d
asof left join
    begun as n
    on n.trace_id = d.trace_id
    and n.pid = d.pid
    and n.tid = d.tid
    and n.depth = d.depth
    and n.start_ns <= d.middle_ns
asof left join
    begun as l
    on l.trace_id = d.trace_id
    and l.pid = d.pid
    and l.tid = d.tid
    and l.start_ns <= d.middle_ns
