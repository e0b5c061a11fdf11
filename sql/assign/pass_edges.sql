-- One row a pass that holds, with the stretch of the main line that is its own: prologue (from
-- the embedding, or the begin of the graph launch that holds layer 0), layers, epilogue.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- prologue_line  BIGINT   -  line_no of its first activity
-- layers_line    BIGINT   -  line_no of the first activity of its first visible layer
-- epilogue_line  BIGINT   -  line_no after its last layer
-- end_line       BIGINT   -  line_no after its last activity
-- starts_whole   BOOLEAN  -  its first activity is in the trace
-- ends_whole     BOOLEAN  -  its last layer's end is in the trace
with
    -- Where the pass must end: at the next pass's first activity or the end of the line.
    limited as (
        select
            b.*,
            coalesce(
                lead(prologue_line) over (partition by trace_id order by pass_no), next_anchor
            ) as limit_line
        from pass_begins as b
    ),

    layer_steps as (
        select l.trace_id, l.pass_no, any_value(m.step) as step
        from limited as l
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.line_no >= l.layers_line
            and m.line_no < l.epilogue_line
        where m.step is not null
        group by l.trace_id, l.pass_no
    ),

    -- Activities after the last layer: those that another step launched, or that open the input
    -- preparation of the next pass, end the epilogue.
    enders as (
        select l.trace_id, l.pass_no, min(m.line_no) as line_no
        from limited as l
        left join layer_steps as s using (trace_id, pass_no)
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.line_no >= l.epilogue_line
            and m.line_no < l.limit_line
        left join prepares as p on p.name = m.name
        where
            case
                when s.step is not null and m.step is not null
                then m.step <> s.step
                else p.name is not null and l.ends_whole
            end
        group by l.trace_id, l.pass_no
    )

select
    l.trace_id,
    l.pass_no,
    l.prologue_line,
    l.layers_line,
    l.epilogue_line,
    if(l.ends_whole, coalesce(e.line_no, l.limit_line), l.epilogue_line) as end_line,
    l.starts_whole,
    l.ends_whole
from limited as l
left join enders as e using (trace_id, pass_no)
