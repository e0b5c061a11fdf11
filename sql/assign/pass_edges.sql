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
            r.pass_no is not null as next_refused,
            x.confidence = 'words' as by_words
        from pass_begins as b
        join boundary_rules as x using (rule_key)
        left join pass_windows as n on n.trace_id = b.trace_id and n.range_no = b.range_no + 1
        left join refused_windows as r on r.trace_id = n.trace_id and r.pass_no = n.pass_no
    ),

    -- A pass that does not hold begins behind the epilogue: embedding, entry norm, attention.
    -- Where words bound passes, also in the same step, and at what may be an embedding.
    begin_lines as (
        select
            m.trace_id, m.line_no, null as rule_key, not (m.is_marker or m.attends) as is_doubtful
        from main_line as m
        where m.is_marker or m.attends or m.category = 'embedding'
        union all
        select h.trace_id, m.line_no, h.rule_key, false as is_doubtful
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'entry'
    ),

    -- Activities after the last layer end the epilogue where another step launched them, where
    -- they prepare the input of the next pass, or begin it.
    enders as (
        select
            m.trace_id,
            m.pass_no,
            min(m.line_no) as line_no,
            min(m.line_no) filter (b.line_no is not null) as begin_line
        from
            (
                select l.*, m.line_no, m.name, m.step as own_step
                from main_line as m
                asof join limited as l on l.trace_id = m.trace_id and m.line_no >= l.epilogue_line
                where m.line_no < l.limit_line
            ) as m
        left join prepares as p on p.name = m.name
        left join
            begin_lines as b
            on b.trace_id = m.trace_id
            and b.line_no = m.line_no
            and coalesce(b.rule_key = m.rule_key, true)
            and (m.by_words or not b.is_doubtful)
        where
            m.ends_whole
            and (
                if(
                    m.own_step is null,
                    p.name is not null or b.line_no is not null,
                    m.own_step is distinct from m.step
                )
                or (m.by_words and b.line_no is not null)
            )
        group by m.trace_id, m.pass_no
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
