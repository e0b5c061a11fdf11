-- One row a backward operator of attention whose forward one is known: by the sequence number of
-- either, or of what is around either. Numbers of one thread rise, so the last before counts.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id          VARCHAR  -  the trace that holds both
-- event_id          BIGINT   -  the backward operator
-- forward_event_id  BIGINT   -  the forward one
with
    calls as (
        select
            o.trace_id, o.event_id, o.pid, o.tid, o.start_ns, o.end_ns, f.direction, a.sequence_no
        from attention_operators as o
        join operator_families as f using (trace_id, name)
        join operator_texts as a using (trace_id, event_id)
    ),

    wrappers as (
        select
            e.trace_id,
            e.pid,
            e.tid,
            e.ts_ns as start_ns,
            e.ts_ns + e.dur_ns as end_ns,
            try_cast(json_extract_string(e.args, '$."Sequence number"') as bigint) as sequence_no
        from timed_events as e
        join
            operator_families as f
            on f.trace_id = e.trace_id
            and f.name = regexp_replace(e.name, '^autograd::engine::evaluate_function: ', '')
        anti join calls as c on c.trace_id = e.trace_id and c.event_id = e.event_id
        where is_operator(e.cat) and e.dur_ns > 0 and sequence_no is not null
    ),

    numbered as (
        select c.*, if(w.end_ns >= c.end_ns, w.sequence_no, null) as outer_no
        from calls as c
        asof left join
            wrappers as w
            on w.trace_id = c.trace_id
            and w.pid = c.pid
            and w.tid = c.tid
            and w.start_ns <= c.start_ns
    ),

    forward as (
        select trace_id, event_id, start_ns, sequence_no as link_no
        from numbered
        where direction = 'fwd' and sequence_no is not null
        union
        select trace_id, event_id, start_ns, outer_no as link_no
        from numbered
        where direction = 'fwd' and outer_no is not null
    )

select b.trace_id, b.event_id, f.event_id as forward_event_id
from numbered as b
asof join
    forward as f
    on f.trace_id = b.trace_id
    and f.link_no = coalesce(b.outer_no, b.sequence_no)
    and f.start_ns <= b.start_ns
where b.direction = 'bwd'
