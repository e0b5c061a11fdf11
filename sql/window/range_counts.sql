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
    counts as (
        select
            r.trace_id,
            r.method,
            r.range_no,
            h.rule_key,
            count(*) as n_hits,
            min(m.line_no) as first_hit,
            max(m.line_no) as last_hit,
            any_value(r.prev_anchor) as prev_anchor,
            bool_or(r.opened) as opened,
            bool_or(r.opened_by_norm) as opened_by_norm,
            any_value(r.next_anchor) as next_anchor,
            bool_or(r.is_first) as is_first,
            bool_or(r.is_last) as is_last,
            bool_or(r.inner_mark) as inner_mark
        from pass_ranges as r
        join
            main_line as m
            on m.trace_id = r.trace_id
            and m.line_no between r.first_anchor and r.last_anchor
        join
            anchor_hits as h
            on h.trace_id = m.trace_id
            and h.event_id = m.event_id
            and h.role = 'anchor'
        group by r.trace_id, r.method, r.range_no, h.rule_key
    )

select
    c.trace_id,
    c.method,
    c.range_no,
    c.rule_key,
    any_value(c.n_hits) as n_hits,
    any_value(c.first_hit) as first_hit,
    any_value(c.last_hit) as last_hit,
    coalesce(max(m.line_no), any_value(c.prev_anchor) + 1) as begin_line,
    any_value(c.prev_anchor) as prev_anchor,
    any_value(c.opened) as opened,
    any_value(c.opened_by_norm) as opened_by_norm,
    any_value(c.next_anchor) as next_anchor,
    any_value(c.is_first) as is_first,
    any_value(c.is_last) as is_last,
    any_value(c.inner_mark) as inner_mark
from counts as c
left join
    main_line as m
    on m.trace_id = c.trace_id
    and m.is_marker
    and m.line_no > c.prev_anchor
    and m.line_no < c.first_hit
group by c.trace_id, c.method, c.range_no, c.rule_key
