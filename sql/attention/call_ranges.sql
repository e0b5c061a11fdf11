-- One row an attention call that a range with a load stands around: the innermost one that was
-- open when the call was launched (a replay: when the graph was), on its thread, else on another
-- of its process, else on the device. A range that tells sums counts before one that does not.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- call_no        BIGINT   -  the call
-- step_event_id  BIGINT   -  the range
-- place          VARCHAR  -  thread, process or device: where the range is
with
    -- The launch of its first activity stands for the call; without one its operator does.
    leads as (
        select
            c.trace_id,
            c.call_no,
            arg_min(a.event_id, (l.launch_ns is null, a.start_ns)) as event_id,
            any_value(c.operator_event_id) filter (
                c.host_trace_id = c.trace_id
            ) as operator_event_id
        from attention_calls as c
        join attention_activities as a using (trace_id, call_no)
        left join launches as l using (trace_id, event_id)
        group by c.trace_id, c.call_no
    ),

    moments as (
        select d.trace_id, d.call_no, 'host' as side, l.pid, l.tid, l.launch_ns as at_ns
        from leads as d
        join launches as l using (trace_id, event_id)
        union all
        select d.trace_id, d.call_no, 'host' as side, o.pid, o.tid, o.ts_ns as at_ns
        from leads as d
        join timed_events as o on o.trace_id = d.trace_id and o.event_id = d.operator_event_id
        anti join launches as l on l.trace_id = d.trace_id and l.event_id = d.event_id
        union all
        select d.trace_id, d.call_no, 'device' as side, a.pid, a.tid, a.start_ns as at_ns
        from leads as d
        join activities as a using (trace_id, event_id)
    ),

    lines as (select distinct trace_id, side, pid, tid, tier from load_spans),

    sought as (
        select
            m.trace_id,
            m.call_no,
            m.side,
            m.pid,
            n.tid,
            n.tier,
            m.at_ns,
            case
                when m.side = 'device' then 'device' when n.tid = '' then 'process' else 'thread'
            end as place
        from moments as m
        join lines as n using (trace_id, side, pid)
        where n.tid in ('', m.tid)
    )

select s.trace_id, s.call_no, r.step_event_id, s.place
from sought as s
asof join
    load_spans as r
    on r.trace_id = s.trace_id
    and r.side = s.side
    and r.pid = s.pid
    and r.tid = s.tid
    and r.tier = s.tier
    and r.at_ns <= s.at_ns
where r.step_event_id is not null
qualify
    row_number() over (
        partition by s.trace_id, s.call_no
        -- What tells lengths on another thread beats mere counts on its own.
        order by
            s.tier = 'counts',
            list_position(['thread', 'process', 'device'], s.place),
            s.tier <> 'sums',
            s.tid = ''
    )
    = 1
