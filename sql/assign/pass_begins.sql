-- One row a pass that holds, with where it begins on the main line: at the embedding, or at the
-- first kernel of the graph launch that holds layer 0.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- status         VARCHAR  -  complete, cut_start or cut_end
-- rule_key       INTEGER  -  boundary rule
-- prev_anchor    BIGINT   -  line_no of the last anchor before it; -1 without one
-- next_anchor    BIGINT   -  line_no of the first anchor after it; the line's length without one
-- layers_line    BIGINT   -  line_no of the first activity of its first visible layer
-- epilogue_line  BIGINT   -  line_no after its last layer
-- has_first      BOOLEAN  -  the begin of layer 0 is in the trace
-- ends_whole     BOOLEAN  -  the end of its last layer is in the trace
-- prologue_line  BIGINT   -  line_no of its first activity
-- starts_whole   BOOLEAN  -  its first activity is in the trace
-- step           BIGINT   -  step annotation that launched its layers; NULL when unknown
with
    held as (
        select p.* from pass_windows as p anti join refused_windows as r using (trace_id, pass_no)
    ),

    layered as (
        select
            h.trace_id,
            h.pass_no,
            h.status,
            h.rule_key,
            h.prev_anchor,
            h.next_anchor,
            min(b.start_line) as layers_line,
            max(b.end_line) as epilogue_line,
            bool_or(b.block_no = 0 and b.begun) as has_first,
            arg_max(b.ended, b.block_no) as ends_whole
        from held as h
        join blocks as b using (trace_id, pass_no)
        group by h.trace_id, h.pass_no, h.status, h.rule_key, h.prev_anchor, h.next_anchor
    ),

    layer_steps as (
        select l.trace_id, l.pass_no, mode(m.step) as step
        from layered as l
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.line_no >= l.layers_line
            and m.line_no < l.epilogue_line
        where m.step is not null
        group by l.trace_id, l.pass_no
    ),

    -- The last stretch of markers without a stranger between them, before layer 0.
    marks as (
        select l.trace_id, l.pass_no, m.line_no, m.category
        from layered as l
        left join layer_steps as s using (trace_id, pass_no)
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.is_embedding
            and m.line_no > l.prev_anchor
            and m.line_no < l.layers_line
        where l.has_first and coalesce(m.step = s.step, true)
    ),

    runs as (
        select
            *, line_no - row_number() over (partition by trace_id, pass_no order by line_no) as run
        from marks
    ),

    embeddings as (
        select trace_id, pass_no, arg_max(first_line, run) as line_no
        from
            (
                select trace_id, pass_no, run, min(line_no) as first_line
                from runs
                group by trace_id, pass_no, run
            )
        group by trace_id, pass_no
    ),

    graphs as (
        select l.trace_id, l.pass_no, min(m.line_no) as line_no
        from layered as l
        join main_line as f on f.trace_id = l.trace_id and f.line_no = l.layers_line
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.graph = f.graph
            and m.line_no > l.prev_anchor
            and m.line_no <= l.layers_line
        where l.has_first
        group by l.trace_id, l.pass_no
    )

select
    l.*,
    least(
        coalesce(e.line_no, l.layers_line), coalesce(g.line_no, l.layers_line), l.layers_line
    ) as prologue_line,
    l.has_first
    and (e.line_no is not null or g.line_no is not null or l.prev_anchor >= 0) as starts_whole,
    s.step
from layered as l
left join layer_steps as s using (trace_id, pass_no)
left join embeddings as e using (trace_id, pass_no)
left join graphs as g using (trace_id, pass_no)
