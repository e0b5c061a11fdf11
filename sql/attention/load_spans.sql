-- One row a moment of a thread at which another range that tells a load becomes the innermost
-- one that is open, or none is. Ranges that tell none are not seen here, so they hide nothing.
-- The depth of a range is counted, not walked: n begins less the ends before.
-- grain: trace_id, side, pid, tid, tier, at_ns
-- keep: yes
--
-- trace_id       VARCHAR  -   the trace
-- side           VARCHAR  -   host, or device for copies of ranges on device tracks
-- pid            VARCHAR  -   process, or device
-- tid            VARCHAR  -   thread, or stream; empty: any of the process
-- tier           VARCHAR  -   what the ranges tell: sums, squares or counts
-- at_ns          BIGINT   ns  from here on
-- step_event_id  BIGINT   -   the range; NULL when none is open
with
    ranges as (
        select a.trace_id, a.side, a.pid, a.tid, t.tier, a.event_id, a.start_ns, a.end_ns
        from annotations as a
        join step_loads as t using (trace_id, name)
        where a.end_ns > a.start_ns
    ),

    scoped as (
        select *
        from ranges
        union all
        select * replace ('' as tid)
        from ranges
    ),

    edges as (
        select *, start_ns as at_ns, 1 as step
        from scoped
        union all
        select *, end_ns as at_ns, -1 as step
        from scoped
    ),

    levels as (
        select
            *,
            sum(step) over in_thread as depth,
            lead(at_ns) over in_thread is distinct from at_ns as is_last
        from edges
        window
            in_thread as (
                partition by trace_id, side, pid, tid, tier
                order by at_ns, step, end_ns desc, event_id
            )
    ),

    moments as (from levels where is_last),

    begun as (from levels where step = 1)

select
    m.trace_id,
    m.side,
    m.pid,
    m.tid,
    m.tier,
    m.at_ns,
    -- Where ranges cross, depths do not tell: then it is the last one begun, if it is open.
    case
        when m.depth > 0 and n.end_ns > m.at_ns
        then n.event_id
        when m.depth > 0 and l.end_ns > m.at_ns
        then l.event_id
    end as step_event_id
from moments as m
asof left join
    begun as n
    on n.trace_id = m.trace_id
    and n.side = m.side
    and n.pid = m.pid
    and n.tid = m.tid
    and n.tier = m.tier
    and n.depth = m.depth
    and n.start_ns <= m.at_ns
asof left join
    begun as l
    on l.trace_id = m.trace_id
    and l.side = m.side
    and l.pid = m.pid
    and l.tid = m.tid
    and l.tier = m.tier
    and l.start_ns <= m.at_ns
