-- One row a kind of oddity that a trace holds: what could not be taken at its word. All stay in
-- `events`; the views say what they make of them.
-- grain: trace_id, oddity
-- keep: store
--
-- trace_id        VARCHAR  -  the trace
-- oddity          VARCHAR  -  short name
-- n               BIGINT   -  how many
-- first_event_id  BIGINT   -  the first of them; NULL where it is about the whole file
-- what            VARCHAR  -  what they are and what becomes of them
with
    arrows as (
        select
            trace_id,
            event_id,
            ph,
            count(case when ph = 's' then 1 end) over in_flow as n_tails,
            count(case when ph = 'f' then 1 end) over in_flow as n_heads
        from events
        where ph in ('s', 'f') and coalesce(cat, '') <> 'fwdbwd'
        window in_flow as (partition by trace_id, cat, id, rank_label_of(pid))
    ),

    open_begins as (select trace_id, event_id from event_pairs where end_event_id is null),

    idle_calls as (
        select e.trace_id, e.event_id, contains(lower(e.name), 'graphlaunch') as is_graph
        from timed_events as e
        anti join launches as l on l.trace_id = e.trace_id and l.launch_event_id = e.event_id
        where is_runtime_call(e.cat) and regexp_matches(e.name, '(?i)launch')
    ),

    found as (
        select trace_id, event_id, replace(flaw, '_', ' ') as oddity
        from activities
        where flaw in ('no_time', 'overrun', 'beside')
        union all
        select trace_id, event_id, if(dur_ns < 0, 'negative duration', 'no duration')
        from timed_events
        anti join open_begins using (trace_id, event_id)
        where coalesce(dur_ns, -1) < 0
        union all
        select trace_id, event_id, 'repeated row'
        from device_events
        anti join activities using (trace_id, event_id)
        union all
        select trace_id, event_id, 'no launch'
        from activities
        anti join launches using (trace_id, event_id)
        union all
        select trace_id, event_id, 'before launch'
        from launches
        where delay_ns < 0
        union all
        select trace_id, event_id, if(is_graph, 'graph without work', 'launch without work')
        from idle_calls
        union all
        select trace_id, event_id, if(ph = 'f', 'arrow without tail', 'arrow without head')
        from arrows
        where n_tails = 0 or n_heads = 0
        union all
        select trace_id, event_id, 'crossing range'
        from host_crossings
        union all
        select trace_id, event_id, 'begin without end'
        from open_begins
        union all
        select e.trace_id, e.event_id, 'end without begin'
        from events as e
        anti join event_pairs as p on p.trace_id = e.trace_id and p.end_event_id = e.event_id
        where e.ph = 'E'
    ),

    texts(oddity, what) as (
        values
            ('no time', 'activities without a time: in no span, sum or mean'),
            ('overrun', 'durations that overrun later work of their stream: counted to its start'),
            ('beside', 'durations past later work of their stream, too many for an error: whole'),
            ('negative duration', 'durations below 0: in no sum or mean'),
            ('no duration', 'events that should last and have no duration: in no sum or mean'),
            ('repeated row', 'rows that repeat an activity in everything: counted once'),
            ('no launch', 'activities whose launch is not in the trace: in totals, in no operator'),
            ('before launch', 'activities that start before their launch: in no mean of delays'),
            ('graph without work', 'graph launches without activities: idle time is not reliable'),
            ('launch without work', 'launches without activities: refused, captured, or cut off'),
            ('arrow without tail', 'flow arrows that end somewhere and begin nowhere'),
            ('arrow without head', 'flow arrows that begin somewhere and end nowhere'),
            (
                'crossing range',
                'host ranges that end after the one they begin in: kept, not nested'
            ),
            ('begin without end', 'begin events that nothing closes: no duration'),
            ('end without begin', 'end events that close nothing')
    )

select
    f.trace_id,
    f.oddity,
    count(*) as n,
    min(f.event_id) as first_event_id,
    any_value(t.what) as what
from found as f
join texts as t using (oddity)
group by f.trace_id, f.oddity
