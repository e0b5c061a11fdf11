-- One row an operation of attention around whose calls tensors are copied: runs of copies right
-- before and behind a call on its stream, of as many elements as its query, key, value or output
-- has, as a wrapper makes that wants contiguous tensors.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id  VARCHAR  -   the trace
-- op_no     BIGINT   -   the operation
-- n_before  DOUBLE   -   copies before a call, mean of its calls
-- n_behind  DOUBLE   -   copies behind a call
-- sum_us    DOUBLE   us  sum of their durations
with
    line as (
        select
            a.trace_id,
            hash(a.pid, a.device, a.stream) as line_key,
            a.event_id,
            coalesce(a.dur_ns, 0) as dur_ns,
            c.call_no,
            row_number() over (
                partition by a.trace_id, a.pid, a.device, a.stream order by a.start_ns, a.gpu_index
            ) as line_no
        from activities as a
        left join attention_activities as c using (trace_id, event_id)
        where a.selected
    ),

    ends as (
        select
            trace_id,
            line_key,
            call_no,
            min(line_no) - 1 as before_no,
            max(line_no) + 1 as behind_no
        from line
        where call_no is not null
        group by trace_id, line_key, call_no
    ),

    -- At most three copies before (query, key, value) and one behind (output) are a wrapper's.
    places as (
        select
            trace_id,
            line_key,
            call_no,
            before_no + 1 as first_no,
            before_no - unnest([0, 1, 2]) as line_no,
            true as before
        from ends
        union all
        select
            trace_id,
            line_key,
            call_no,
            behind_no as first_no,
            behind_no as line_no,
            false as before
        from ends
    ),

    sized as (
        select
            p.*,
            l.dur_ns,
            o.operator in ('aten::copy_', 'aten::clone', 'aten::contiguous')
            and list_product(try_cast(json_extract(o.input_dims, '$[0]') as double[])) in (
                if(p.before, c.n_q * c.h_q * c.d_qk, c.n_q * c.h_q * c.d_v) * coalesce(c.batch, 1),
                if(p.before, c.n_kv * c.h_kv * c.d_qk, null) * coalesce(c.batch, 1),
                if(p.before, c.n_kv * c.h_kv * c.d_v, null) * coalesce(c.batch, 1)
            ) as fits
        from places as p
        join attention_calls as c using (trace_id, call_no)
        join
            line as l
            on l.trace_id = p.trace_id
            and l.line_key = p.line_key
            and l.line_no = p.line_no
            and l.call_no is null
        join activity_operators as o on o.trace_id = l.trace_id and o.event_id = l.event_id
    ),

    -- Between two calls a copy is the output of the first, else an input of the next.
    own as (
        select *
        from sized
        where fits
        qualify
            row_number() over (partition by trace_id, line_key, line_no order by before, first_no)
            = 1
    ),

    -- The run ends where something else stands.
    runs as (
        select *
        from own
        qualify
            not before
            or count(*) over (
                partition by trace_id, line_key, call_no, before order by line_no desc
            )
            = first_no - line_no
    )

select
    p.trace_id,
    p.op_no,
    count(r.before) filter (r.before) / any_value(t.n_calls) as n_before,
    count(r.before) filter (not r.before) / any_value(t.n_calls) as n_behind,
    sum(r.dur_ns) / 1e3 as sum_us
from runs as r
join attention_populations as p using (trace_id, call_no)
join attention_op_times as t on t.trace_id = p.trace_id and t.op_no = p.op_no
group by p.trace_id, p.op_no
