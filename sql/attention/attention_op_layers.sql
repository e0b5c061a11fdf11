-- One row an operation of attention with the layers that its calls are in.
-- grain: trace_id, op_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- op_no     BIGINT   -  the operation
-- layers    VARCHAR  -  as 0-23 or 1,3,..,23; NULL where none is known
with
    numbers as (
        select distinct p.trace_id, p.op_no, c.layer_no
        from attention_populations as p
        join attention_calls as c using (trace_id, call_no)
        where c.layer_no is not null
    ),

    stepped as (
        select *, layer_no - lag(layer_no) over in_op as step, row_number() over in_op as number
        from numbers
        window in_op as (partition by trace_id, op_no order by layer_no)
    ),

    runs as (
        select
            trace_id,
            op_no,
            min(layer_no) as first_no,
            if(count(*) > 1, min(layer_no) || '-' || max(layer_no), '' || min(layer_no)) as run
        from stepped
        group by trace_id, op_no, layer_no - number
    ),

    listed as (
        select trace_id, op_no, string_agg(run, ',' order by first_no) as run_list
        from runs
        group by trace_id, op_no
    )

select
    s.trace_id,
    s.op_no,
    if(
        min(s.step) = max(s.step) and max(s.step) > 1 and count(*) > 3,
        min(s.layer_no) || ',' || min(s.layer_no) + max(s.step) || ',..,' || max(s.layer_no),
        any_value(l.run_list)
    ) as layers
from stepped as s
join listed as l using (trace_id, op_no)
group by s.trace_id, s.op_no
