-- One row an activity of the main line: the pass, layer and slot of its stretch.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the activity
-- line_no   BIGINT   -  its position on the main line
-- pass_no   BIGINT   -  0-based pass; NULL outside
-- loop_no   BIGINT   -  0-based visit of the layers; NULL outside layers
-- layer_no  BIGINT   -  0-based layer; NULL outside layers
-- slot      VARCHAR  -  part of the layer; NULL outside layers
-- region    VARCHAR  -  prologue, layer, epilogue or outside; NULL in a refused pass
with
    on_line as (
        select
            m.trace_id,
            m.event_id,
            m.line_no,
            if(m.line_no < e.end_line, e.pass_no, null) as pass_no,
            e.layers_line,
            e.epilogue_line,
            if(m.line_no < b.end_line and b.pass_no = e.pass_no, b.block_no, null) as block_no
        from main_line as m
        asof left join pass_edges as e on e.trace_id = m.trace_id and m.line_no >= e.prologue_line
        asof left join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
    )

select
    o.trace_id,
    o.event_id,
    o.line_no,
    coalesce(o.pass_no, r.pass_no) as pass_no,
    if(o.pass_no is null, null, b.loop_no) as loop_no,
    if(o.pass_no is null, null, b.layer_no) as layer_no,
    if(o.pass_no is null, null, b.slot) as slot,
    case
        when o.pass_no is null
        then if(r.pass_no is null, 'outside', null)
        when b.block_no is not null
        then 'layer'
        when o.line_no < o.layers_line
        then 'prologue'
        else 'epilogue'
    end as region
from on_line as o
left join
    blocks as b on b.trace_id = o.trace_id and b.pass_no = o.pass_no and b.block_no = o.block_no
left join
    refused_windows as r on r.trace_id = o.trace_id and o.line_no between r.first_hit and r.last_hit
