-- One row a pass that holds, with where it begins on the main line: at the embedding, or at the
-- first kernel of the graph launch that holds layer 0, unless other passes share it.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- status         VARCHAR  -  complete, cut_start or cut_end
-- rule_key       INTEGER  -  boundary rule
-- range_no       BIGINT   -  0-based, in order of the line
-- is_first       BOOLEAN  -  no other stands before it on its lane
-- prev_anchor    BIGINT   -  line_no of the last anchor before it, or before its lane
-- next_anchor    BIGINT   -  line_no of the first anchor after it, or the lane's end
-- layers_line    BIGINT   -  line_no of the first activity of its first visible layer
-- epilogue_line  BIGINT   -  line_no after its last layer
-- has_first      BOOLEAN  -  the begin of layer 0 is in the trace
-- ends_whole     BOOLEAN  -  the end of its last layer is in the trace
-- step           BIGINT   -  step annotation that launched its layers; NULL when unknown
-- prologue_line  BIGINT   -  line_no of its first activity
-- starts_whole   BOOLEAN  -  its first activity is in the trace
with
    -- A copy that prepares a step between two embeddings prepares the later one.
    stops as (
        select l.trace_id, l.pass_no, max(m.line_no) as line_no
        from pass_layers as l
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.line_no > l.prev_anchor
            and m.line_no < l.layers_line
        left join prepares as p on p.name = m.name
        where
            (
                p.name is not null
                or m.is_head
                or m.category = 'sampling'
                or starts_with(m.name, 'Mem')
            )
            and exists (
                from main_line as e
                where
                    e.trace_id = l.trace_id
                    and e.is_embedding
                    and e.line_no > m.line_no
                    and e.line_no < l.layers_line
            )
        group by l.trace_id, l.pass_no
    ),

    -- The first embedding behind whatever ends the pass before or prepares this one.
    embeddings as (
        select l.trace_id, l.pass_no, min(m.line_no) as line_no
        from pass_layers as l
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.is_embedding
            and m.line_no > l.prev_anchor
            and m.line_no < l.layers_line
        left join stops as x on x.trace_id = l.trace_id and x.pass_no = l.pass_no
        where
            l.has_first
            and (l.step is null or coalesce(m.step = l.step, false))
            and m.line_no > coalesce(x.line_no, -1)
        group by l.trace_id, l.pass_no
    ),

    graphs as (
        select l.trace_id, l.pass_no, min(m.line_no) as line_no
        from pass_layers as l
        join main_line as f on f.trace_id = l.trace_id and f.line_no = l.layers_line
        join
            main_line as m
            on m.trace_id = l.trace_id
            and m.graph = f.graph
            and m.line_no > l.prev_anchor
            and m.line_no <= l.layers_line
        left join main_line as p on p.trace_id = l.trace_id and p.line_no = l.prev_anchor
        asof left join
            (select trace_id, line_no, graph from main_line where is_head) as h
            on h.trace_id = l.trace_id
            and h.line_no < l.layers_line
        where l.has_first and p.graph is distinct from f.graph and h.graph is distinct from f.graph
        group by l.trace_id, l.pass_no
    ),

    -- A step that begins with the layers shows that nothing of the pass is missing.
    stepped as (
        select l.trace_id, l.pass_no
        from pass_layers as l
        join main_line as m on m.trace_id = l.trace_id and m.step = l.step
        where l.has_first
        group by l.trace_id, l.pass_no
        having min(m.line_no) >= any_value(l.layers_line)
    )

select
    l.*,
    least(
        coalesce(e.line_no, l.layers_line), coalesce(g.line_no, l.layers_line), l.layers_line
    ) as prologue_line,
    l.has_first
    and (
        e.line_no is not null or g.line_no is not null or s.pass_no is not null or not l.is_first
    ) as starts_whole
from pass_layers as l
left join embeddings as e using (trace_id, pass_no)
left join graphs as g using (trace_id, pass_no)
left join stepped as s using (trace_id, pass_no)
