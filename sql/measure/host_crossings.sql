-- One row a host range that starts inside an earlier one of its thread and ends after it, by
-- more than a nanosecond: ranges of a thread should nest. They are kept, and operators found
-- across them.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the range
with
    spans as (
        select trace_id, event_id, pid, tid, ts_ns as start_ns, ts_ns + dur_ns as end_ns
        from timed_events
        where dur_ns > 0 and ts_ns is not null and is_host_side(cat)
    ),

    edges as (
        select trace_id, event_id, pid, tid, start_ns, end_ns, start_ns as at_ns, 1 as step
        from spans
        union all
        select trace_id, event_id, pid, tid, start_ns, end_ns, end_ns as at_ns, -1 as step
        from spans
    ),

    -- Begins and ends as brackets: where ranges nest, each begin is closed by its own end.
    levels as (
        select
            *,
            sum(step) over (
                partition by trace_id, pid, tid
                order by at_ns, step, if(step = 1, - end_ns, - start_ns), step * event_id
                rows unbounded preceding
            ) as depth
        from edges
    ),

    closed as (
        select
            trace_id,
            event_id,
            step,
            start_ns,
            end_ns,
            lead(start_ns) over on_level as other_start_ns,
            lead(end_ns) over on_level as other_end_ns
        from levels
        window
            on_level as (
                partition by trace_id, pid, tid, if(step = 1, depth, depth + 1)
                order by at_ns, step, if(step = 1, - end_ns, - start_ns), step * event_id
            )
    )

select trace_id, event_id
from closed
where
    step = 1
    and other_start_ns < start_ns
    and other_end_ns > start_ns + 1
    and other_end_ns < end_ns - 1
