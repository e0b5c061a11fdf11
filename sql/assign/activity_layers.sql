-- One row a device activity: the pass, layer and slot it belongs to.
-- On the main line by position between boundaries. On another stream by its launch: it belongs
-- where the main-line activity launched just before it on the same thread belongs, if the one
-- launched just after it is of the same pass; time overlap alone is no membership.
-- grain: trace_id, event_id
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the activity
-- pass_no   BIGINT   -  0-based pass; NULL outside
-- loop_no   BIGINT   -  0-based visit of the layers; NULL outside layers
-- layer_no  BIGINT   -  0-based layer; NULL outside layers
-- slot      VARCHAR  -  which part of the layer; NULL outside layers
-- region    VARCHAR  -  prologue, layer, epilogue or outside; NULL in a refused pass
-- basis     VARCHAR  -  line (position between boundaries), launch (launch order) or none
with
    line_launches as (
        select
            p.trace_id,
            l.pid,
            l.tid,
            l.launch_ns,
            arg_min(p.pass_no, p.line_no) as first_pass,
            max_by(
                {'p':p.pass_no, 'o':p.loop_no, 'l':p.layer_no, 's':p.slot, 'r':p.region}, p.line_no
            ) as last_place
        from line_places as p
        join launches as l using (trace_id, event_id)
        group by p.trace_id, l.pid, l.tid, l.launch_ns
    ),

    beside as (
        select a.trace_id, a.event_id, l.pid, l.tid, l.launch_ns
        from activities as a
        join launches as l using (trace_id, event_id)
        anti join main_line as m using (trace_id, event_id)
        where a.selected
    ),

    launched as (
        select
            b.trace_id,
            b.event_id,
            if(
                p.last_place.p = n.first_pass and p.last_place.r <> 'epilogue', p.last_place, null
            ) as place
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
        else 'outside'
    end as region,
    case
        when p.event_id is not null then 'line' when l.place is not null then 'launch' else 'none'
    end as basis
from activities as a
left join line_places as p using (trace_id, event_id)
left join launched as l using (trace_id, event_id)
