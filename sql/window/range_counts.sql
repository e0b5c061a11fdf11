-- One row a stretch of anchors and a boundary rule: how often the rule's anchors occur in it.
-- grain: trace_id, method, range_no, rule_key
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- method          VARCHAR  -  way of telling passes apart
-- range_no        BIGINT   -  the stretch
-- rule_key        INTEGER  -  the boundary rule
-- n_hits          BIGINT   -  anchors of the rule in the stretch
-- first_hit       BIGINT   -  line_no of the rule's first anchor
-- last_hit        BIGINT   -  line_no of the rule's last anchor
-- begin_line      BIGINT   -  line_no of the last marker before it; without one, after prev_anchor
-- prev_anchor     BIGINT   -  line_no of the last anchor before the stretch, or before its lane
-- opened          BOOLEAN  -  its begin is in the trace
-- opened_by_norm  BOOLEAN  -  only by a norm that layers may run inside, too
-- next_anchor     BIGINT   -  line_no of the first anchor behind it, or the lane's end
-- is_first        BOOLEAN  -  no stretch stands before it
-- is_last         BOOLEAN  -  no stretch follows
-- inner_mark      BOOLEAN  -  a marker stands between two of its anchors
with
    hits as (
        select h.trace_id, h.rule_key, m.line_no
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'anchor'
    ),

    -- The stretches of a method do not overlap.
    placed as (
        select r.*, h.rule_key, h.line_no
        from
            (
                select h.*, w.method
                from hits as h
                join (select distinct trace_id, method from pass_ranges) as w using (trace_id)
            ) as h
        asof join
            pass_ranges as r
            on r.trace_id = h.trace_id
            and r.method = h.method
            and r.first_anchor <= h.line_no
        where h.line_no <= r.last_anchor
    ),

    counts as (
        select
            trace_id,
            method,
            range_no,
            rule_key,
            count(*) as n_hits,
            min(line_no) as first_hit,
            max(line_no) as last_hit,
            any_value(prev_anchor) as prev_anchor,
            bool_or(opened) as opened,
            bool_or(opened_by_norm) as opened_by_norm,
            any_value(next_anchor) as next_anchor,
            bool_or(is_first) as is_first,
            bool_or(is_last) as is_last,
            bool_or(inner_mark) as inner_mark
        from placed
        group by trace_id, method, range_no, rule_key
    )

select
    c.trace_id,
    c.method,
    c.range_no,
    c.rule_key,
    c.n_hits,
    c.first_hit,
    c.last_hit,
    if(m.line_no > c.prev_anchor, m.line_no, c.prev_anchor + 1) as begin_line,
    c.prev_anchor,
    c.opened,
    c.opened_by_norm,
    c.next_anchor,
    c.is_first,
    c.is_last,
    c.inner_mark
from counts as c
asof left join
    (select trace_id, line_no from main_line where is_marker) as m
    on m.trace_id = c.trace_id
    and m.line_no < c.first_hit
