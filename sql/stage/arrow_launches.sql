-- One row a device activity without a call of its correlation id, but with a flow arrow that
-- ends at its start: the host call at the arrow's tail.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id         VARCHAR  -  the trace
-- event_id         BIGINT   -  the activity
-- launch_event_id  BIGINT   -  the host call
with
    alone as (
        select trace_id, event_id, pid, tid, rank_label, start_ns
        from activities as a
        anti join
            launch_calls as c
            on c.trace_id = a.trace_id
            and c.correlation = a.correlation
            and c.rank_label is not distinct from a.rank_label
        where start_ns is not null
    ),

    heads as (
        select a.trace_id, a.event_id, a.rank_label, f.cat, f.id
        from alone as a
        join
            events as f
            on f.trace_id = a.trace_id
            and f.pid = a.pid
            and f.tid = a.tid
            and f.ts_ns = a.start_ns
        where f.ph = 'f'
    )

select
    h.trace_id,
    h.event_id,
    -- An operator may begin with its call.
    arg_min(c.event_id, (not is_runtime_call(c.cat), c.event_id)) as launch_event_id
from heads as h
join events as s on s.trace_id = h.trace_id and s.cat = h.cat and s.id = h.id
join
    events as c on c.trace_id = s.trace_id and c.pid = s.pid and c.tid = s.tid and c.ts_ns = s.ts_ns
where s.ph = 's' and c.ph in ('X', 'B') and rank_label_of(s.pid) is not distinct from h.rank_label
group by h.trace_id, h.event_id
