-- One row a stream whose order of kernels shows a whole pass: what stands between passes.
-- grain: trace_id, device, stream
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- device    BIGINT   -  the device
-- stream    BIGINT   -  the stream
-- n_line    BIGINT   -  kernels of the stream
-- n_marks   BIGINT   -  names that run once a pass, between layers
-- repeats   BOOLEAN  -  several passes show them
-- attends   BOOLEAN  -  a rule knows attention kernels among its names
-- before    VARCHAR  -  name before the first whole pass's layers; NULL at the begin
-- behind    VARCHAR  -  name behind them; NULL at the end
with
    names as (
        select
            k.trace_id,
            k.device,
            k.stream,
            any_value(k.n_line) as n_line,
            bool_or(c.category in ('attention', 'mla', 'linear_attention')) as attends
        from stream_kernels as k
        join name_classes as c using (trace_id, name)
        group by k.trace_id, k.device, k.stream
    ),

    marks as (
        select trace_id, device, stream, count(*) as n_marks, bool_or(repeats) as repeats
        from pass_marks
        group by trace_id, device, stream
    ),

    firsts as (
        select
            trace_id,
            device,
            stream,
            min(begin_line) as begin_line,
            arg_min(end_line, begin_line) as end_line
        from layer_stretches
        where whole
        group by trace_id, device, stream
    )

select
    f.trace_id,
    f.device,
    f.stream,
    n.n_line,
    coalesce(m.n_marks, 0) as n_marks,
    coalesce(m.repeats, false) as repeats,
    n.attends,
    b.name as before,
    a.name as behind
from firsts as f
join names as n using (trace_id, device, stream)
left join marks as m using (trace_id, device, stream)
left join
    stream_kernels as b
    on b.trace_id = f.trace_id
    and b.device = f.device
    and b.stream = f.stream
    and b.line_no = f.begin_line - 1
left join
    stream_kernels as a
    on a.trace_id = f.trace_id
    and a.device = f.device
    and a.stream = f.stream
    and a.line_no = f.end_line
