-- One row a pass that holds, with where its layers stand on the main line.
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
            h.range_no,
            h.is_first,
            min(b.start_line) as layers_line,
            max(b.end_line) as epilogue_line,
            bool_or(b.block_no = 0 and b.begun) as has_first,
            arg_max(b.ended, b.block_no) as ends_whole
        from held as h
        join blocks as b using (trace_id, pass_no)
        group by all
    ),

    layer_steps as (
        select l.trace_id, l.pass_no, mode(m.step) as step
        from main_line as m
        asof join layered as l on l.trace_id = m.trace_id and m.line_no >= l.layers_line
        where m.step is not null and m.line_no < l.epilogue_line
        group by l.trace_id, l.pass_no
    )

select
    l.trace_id,
    l.pass_no,
    l.status,
    l.rule_key,
    l.range_no,
    l.is_first,
    l.prev_anchor,
    l.next_anchor,
    l.layers_line,
    l.epilogue_line,
    l.has_first,
    l.ends_whole,
    s.step
from layered as l
left join layer_steps as s using (trace_id, pass_no)
