-- One row a begin event (ph B) with the end event (ph E) that closes it. Pairs nest on a
-- thread: a begin is closed by the next end at its depth. What no end closes stays open.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id      VARCHAR  -   the trace
-- event_id      BIGINT   -   the begin
-- end_event_id  BIGINT   -   the end; NULL where it stays open
-- dur_ns        BIGINT   ns  time to the end; NULL where it stays open
with
    marks as (
        select
            trace_id,
            event_id,
            ph,
            pid,
            tid,
            ts_ns,
            sum(if(ph = 'B', 1, -1)) over (
                partition by trace_id, pid, tid order by ts_ns, event_id rows unbounded preceding
            ) as depth
        from events
        where ph in ('B', 'E') and ts_ns is not null
    ),

    matched as (
        select
            trace_id,
            event_id,
            ph,
            ts_ns,
            lead(ph) over on_level as next_ph,
            lead(event_id) over on_level as next_id,
            lead(ts_ns) over on_level as next_ns
        from marks
        window
            on_level as (
                partition by trace_id, pid, tid, if(ph = 'B', depth, depth + 1)
                order by ts_ns, event_id
            )
    )

select
    trace_id,
    event_id,
    if(next_ph = 'E', next_id, null) as end_event_id,
    if(next_ph = 'E', next_ns - ts_ns, null) as dur_ns
from matched
where ph = 'B'
