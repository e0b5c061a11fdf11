-- One row a pass that holds, with the stretch of the main line that is its own: prologue (from
-- the embedding, or the begin of the graph launch that holds layer 0), layers, epilogue.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- prologue_line  BIGINT   -  line_no of its first activity
-- layers_line    BIGINT   -  line_no of the first activity of its first visible layer
-- epilogue_line  BIGINT   -  line_no after its last layer
-- end_line       BIGINT   -  line_no after its last activity
-- starts_whole   BOOLEAN  -  its first activity is in the trace
-- ends_whole     BOOLEAN  -  its last layer's end is in the trace
-- next_line      BIGINT   -  line_no behind it from which on places are unknown; NULL without
-- step           BIGINT   -  step annotation that launched its layers; NULL when unknown
with
    -- Where the pass must end: at the next pass's first activity or the end of the line.
    limited as (
        select
            b.*,
            least(
                coalesce(
                    lead(b.prologue_line) over (partition by b.trace_id order by b.range_no),
                    b.next_anchor
                ),
                b.next_anchor
            ) as limit_line,
            r.pass_no is not null as next_refused
        from pass_begins as b
        left join pass_windows as n on n.trace_id = b.trace_id and n.range_no = b.range_no + 1
        left join refused_windows as r on r.trace_id = n.trace_id and r.pass_no = n.pass_no
    ),

    -- A pass that does not hold begins behind the epilogue: embedding, entry norm, attention.
    begin_lines as (
        select m.trace_id, m.line_no, null as rule_key
        from main_line as m
        where m.is_marker or m.attends
        union all
        select h.trace_id, m.line_no, h.rule_key
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'entry'
    ),

    -- Activities after the last layer end the epilogue where another step launched them, where
    -- they prepare the input of the next pass, or begin it.
    enders as (
        select
            l.trace_id,
            l.pass_no,
            min(m.line_no) as line_no,
            min(m.line_no) filter (b.line_no is not null) as begin_line
        from limited as l
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.line_no >= l.epilogue_line
            and m.line_no < l.limit_line
        left join prepares as p on p.name = m.name
        left join
            begin_lines as b
            on b.trace_id = m.trace_id
            and b.line_no = m.line_no
            and coalesce(b.rule_key = l.rule_key, true)
        where
            l.ends_whole
            and if(
                m.step is null,
                p.name is not null or b.line_no is not null,
                m.step is distinct from l.step
            )
        group by l.trace_id, l.pass_no
    )

select
    l.trace_id,
    l.pass_no,
    l.prologue_line,
    l.layers_line,
    l.epilogue_line,
    case
        when not l.ends_whole
        then l.epilogue_line
        when l.next_refused and e.begin_line is null
        then coalesce(e.line_no, l.epilogue_line)
        else coalesce(e.line_no, l.limit_line)
    end as end_line,
    l.starts_whole,
    l.ends_whole,
    if(
        l.next_refused or not l.ends_whole,
        coalesce(if(l.next_refused, e.line_no, e.begin_line), l.epilogue_line),
        e.begin_line
    ) as next_line,
    l.step
from limited as l
left join enders as e using (trace_id, pass_no)
