-- One row an activity of the main line: the pass, layer and slot of its stretch. Between passes
-- the place is unknown where a pass stands that does not hold, and before the first pass for what
-- was launched before the trace or its step began: the rest of a pass without a visible layer.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- event_id  BIGINT   -  the activity
-- line_no   BIGINT   -  its position on the main line
-- pass_no   BIGINT   -  0-based pass; NULL outside
-- loop_no   BIGINT   -  0-based visit of its layer, or loop that begins or ends; else NULL
-- layer_no  BIGINT   -  0-based layer; NULL outside layers
-- slot      VARCHAR  -  part of the layer; NULL outside layers
-- region    VARCHAR  -  prologue, layer, epilogue or outside; NULL when unknown
with
    on_line as (
        select
            m.trace_id,
            m.event_id,
            m.line_no,
            m.launched,
            m.step,
            e.pass_no as last_pass,
            if(m.line_no < e.end_line, e.pass_no, null) as pass_no,
            e.layers_line,
            e.epilogue_line,
            coalesce(m.line_no >= e.next_line, false) as unheld,
            if(m.line_no < b.end_line and b.pass_no = e.pass_no, b.block_no, null) as block_no,
            if(m.line_no < n.end_line and n.pass_no = e.pass_no, n.loop_no, null) as run_loop,
            n.region as run_region
        from main_line as m
        asof left join pass_edges as e on e.trace_id = m.trace_id and m.line_no >= e.prologue_line
        asof left join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
        asof left join run_starts as n on n.trace_id = m.trace_id and m.line_no >= n.start_line
    ),

    firsts as (
        select e.trace_id, e.pass_no, e.step, e.starts_whole, r.confidence = 'words' as by_words
        from pass_edges as e
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r using (rule_key)
        qualify row_number() over (partition by e.trace_id order by e.layers_line) = 1
    )

select
    o.trace_id,
    o.event_id,
    o.line_no,
    coalesce(o.pass_no, r.pass_no) as pass_no,
    if(o.pass_no is null, null, coalesce(b.loop_no, o.run_loop)) as loop_no,
    if(o.pass_no is null, null, b.layer_no) as layer_no,
    if(o.pass_no is null, null, b.slot) as slot,
    case
        when o.pass_no is null
        then
            case
                when
                    f.pass_no is null
                    or r.pass_no is not null
                    or o.unheld
                    or (
                        o.last_pass is null
                        and (
                            f.pass_no > 0
                            or (f.by_words and o.step is null)
                            or not f.starts_whole
                            or not o.launched
                            or (f.step is not null and o.step is null)
                        )
                    )
                then null
                else 'outside'
            end
        when b.layer_no is not null
        then 'layer'
        when b.block_no is not null
        then 'epilogue'
        when o.run_loop is not null
        then o.run_region
        when o.line_no < o.layers_line
        then 'prologue'
        else 'epilogue'
    end as region
from on_line as o
left join firsts as f using (trace_id)
left join
    blocks as b on b.trace_id = o.trace_id and b.pass_no = o.pass_no and b.block_no = o.block_no
left join
    refused_windows as r on r.trace_id = o.trace_id and o.line_no between r.first_hit and r.last_hit
