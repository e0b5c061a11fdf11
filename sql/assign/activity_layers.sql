-- One row a device activity: the pass, layer and slot it belongs to.
-- On the main line by position between boundaries. On another stream by its launch: it belongs
-- where the main-line activity launched just before it on the same thread belongs, if the one
-- launched just after it is of the same pass; time overlap alone is no membership. Behind the last
-- layer nothing tells sampling from a scheduler's own work, so there it is outside. Without a
-- launch in the trace its place is unknown.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the activity
-- pass_no   BIGINT   -  0-based pass; NULL outside
-- loop_no   BIGINT   -  0-based visit of its layer, or loop that begins or ends; else NULL
-- layer_no  BIGINT   -  0-based layer; NULL outside layers
-- slot      VARCHAR  -  which part of the layer; NULL outside layers
-- region    VARCHAR  -  prologue, layer, epilogue or outside; NULL when unknown or not selected
-- basis     VARCHAR  -  line (position between boundaries), launch (launch order) or none
with
    beside as (
        select a.trace_id, a.event_id, l.pid, l.tid, l.launch_ns
        from activities as a
        join launches as l using (trace_id, event_id)
        anti join main_line as m using (trace_id, event_id)
        where a.selected
    ),

    -- Of the threads that launch something beside the line; mostly there are none.
    line_launches as (
        select
            p.trace_id,
            l.pid,
            l.tid,
            l.launch_ns,
            min_by(
                {'p':p.pass_no, 'o':p.loop_no, 'l':p.layer_no, 's':p.slot, 'r':p.region}, p.line_no
            ) as first_place,
            max_by(
                {'p':p.pass_no, 'o':p.loop_no, 'l':p.layer_no, 's':p.slot, 'r':p.region}, p.line_no
            ) as last_place
        from line_places as p
        join launches as l using (trace_id, event_id)
        semi join beside as b on b.trace_id = p.trace_id and b.pid = l.pid and b.tid = l.tid
        group by p.trace_id, l.pid, l.tid, l.launch_ns
    ),

    between_launches as (
        select
            b.trace_id,
            b.event_id,
            p.launch_ns as prev_ns,
            p.last_place as prev,
            n.launch_ns as next_ns,
            n.first_place as next
        from beside as b
        asof left join
            line_launches as p
            on p.trace_id = b.trace_id
            and p.pid = b.pid
            and p.tid = b.tid
            and p.launch_ns <= b.launch_ns
        asof left join
            line_launches as n
            on n.trace_id = b.trace_id
            and n.pid = b.pid
            and n.tid = b.tid
            and n.launch_ns > b.launch_ns
    ),

    launched as (
        select
            b.trace_id,
            b.event_id,
            case
                when b.prev.r = 'epilogue'
                then null
                when
                    b.prev.p = b.next.p
                    -- The trace ends inside the pass.
                    or (b.next_ns is null and not e.ends_whole)
                then b.prev
            end as place,
            -- Beside a pass that does not hold, or begun before the trace.
            (b.prev_ns is not null and b.prev.r is null)
            or (b.next_ns is not null and b.next.r is null)
            or (b.prev_ns is null and b.next.r in ('layer', 'epilogue'))
            -- Beside two passes at once.
            or coalesce(b.prev.p <> b.next.p and b.prev.r <> 'epilogue', false) as is_unknown
        from between_launches as b
        left join pass_edges as e on e.trace_id = b.trace_id and e.pass_no = b.prev.p
    )

select
    a.trace_id,
    a.event_id,
    coalesce(p.pass_no, l.place.p) as pass_no,
    coalesce(p.loop_no, l.place.o) as loop_no,
    coalesce(p.layer_no, l.place.l) as layer_no,
    coalesce(p.slot, l.place.s) as slot,
    case
        when p.event_id is not null
        then p.region
        when l.place is not null
        then l.place.r
        when h.trace_id is not null and not l.is_unknown
        then 'outside'
    end as region,
    case
        when p.event_id is not null then 'line' when l.place is not null then 'launch' else 'none'
    end as basis
from activities as a
left join line_places as p using (trace_id, event_id)
left join launched as l using (trace_id, event_id)
left join (select distinct trace_id from pass_edges) as h using (trace_id)
