-- One row an operation of attention with the place in the model that its first call is launched
-- from: the innermost three modules, else the operators around it.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- op_no     BIGINT   -  the operation
-- path      VARCHAR  -  as BertLayer_0 > BertAttention_0 > BertSelfAttention_0; NULL without any
-- source    VARCHAR  -  modules or operators
with
    firsts as (
        select
            c.trace_id,
            t.op_no,
            if(c.operator_event_id is null, c.trace_id, c.host_trace_id) as host_trace_id,
            -- A replayed graph is launched from one place for all of it.
            if(
                c.operator_event_id is null and l.via_graph,
                null,
                coalesce(c.operator_event_id, l.launch_event_id)
            ) as host_event_id,
            c.operator
        from attention_op_times as t
        join attention_calls as c on c.trace_id = t.trace_id and c.call_no = t.lead_call_no
        left join launches as l on l.trace_id = c.trace_id and l.event_id = c.lead_event_id
    ),

    places as (
        select f.*, e.pid, e.tid, e.ts_ns
        from firsts as f
        join timed_events as e on e.trace_id = f.host_trace_id and e.event_id = f.host_event_id
    ),

    around as (
        select
            p.trace_id,
            p.op_no,
            cat = 'python_function' as is_module,
            if(is_module, substr(e.name, 12), e.name) as name,
            row_number() over (
                partition by p.trace_id, p.op_no, is_module order by e.ts_ns desc, e.dur_ns
            ) as depth
        from places as p
        join
            (
                select *
                from timed_events
                where starts_with(name, 'nn.Module: ') or is_operator(cat)
            ) as e
            on e.trace_id = p.host_trace_id
            and e.pid = p.pid
            and e.tid = p.tid
            and e.ts_ns <= p.ts_ns
            and e.ts_ns + e.dur_ns > p.ts_ns
            and e.event_id <> p.host_event_id
    )

select
    trace_id,
    op_no,
    string_agg(name, ' > ' order by depth desc) as path,
    if(bool_or(is_module), 'modules', 'operators') as source
from around
where depth <= 3
group by trace_id, op_no, is_module
qualify row_number() over (partition by trace_id, op_no order by not is_module) = 1
