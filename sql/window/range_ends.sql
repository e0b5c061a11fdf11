-- One row a stretch of anchors and a boundary rule whose end is in the trace: another stretch, a
-- marker or the rule's exit follows; or the first GEMM behind it is none of a block (LM head), and
-- nothing follows that only a layer does. Other names prove no end: what layer 0 lacks may be the
-- next layer's.
-- grain: trace_id, method, range_no, rule_key
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- method    VARCHAR  -  way of telling passes apart
-- range_no  BIGINT   -  the stretch
-- rule_key  INTEGER  -  the boundary rule
with
    -- What runs between anchors of other stretches is no head either, as an exit gate behind a
    -- loop.
    block_names as (
        select c.trace_id, c.method, c.range_no, c.rule_key, m.name
        from range_counts as c
        join
            main_line as m
            on m.trace_id = c.trace_id
            and m.line_no between c.begin_line and c.last_hit
        where c.is_last
        union
        select c.trace_id, c.method, c.range_no, c.rule_key, m.name
        from range_counts as c
        join
            range_counts as o
            on o.trace_id = c.trace_id
            and o.method = c.method
            and o.rule_key = c.rule_key
            and o.range_no <> c.range_no
        join
            main_line as m
            on m.trace_id = o.trace_id
            and m.line_no between o.first_hit and o.last_hit
        where c.is_last
    ),

    tails as (
        select
            c.trace_id,
            c.method,
            c.range_no,
            c.rule_key,
            bool_or(m.is_marker or x.event_id is not null) as has_marker,
            arg_min(b.name is null, m.line_no) filter (starts_with(m.category, 'gemm')) as has_head,
            bool_or(
                m.attends or m.category in ('rope', 'kv_cache', 'activation', 'moe', 'moe_routing')
            ) as has_layer
        from range_counts as c
        join
            main_line as m
            on m.trace_id = c.trace_id
            and m.line_no > c.last_hit
            and m.line_no < c.next_anchor
        left join
            anchor_hits as x
            on x.trace_id = m.trace_id
            and x.event_id = m.event_id
            and x.rule_key = c.rule_key
            and x.role = 'exit'
        left join
            block_names as b
            on b.trace_id = c.trace_id
            and b.method = c.method
            and b.range_no = c.range_no
            and b.rule_key = c.rule_key
            and b.name = m.name
        where c.is_last
        group by c.trace_id, c.method, c.range_no, c.rule_key
    )

select trace_id, method, range_no, rule_key
from range_counts
where not is_last
union all
select trace_id, method, range_no, rule_key
from tails
where has_marker or (has_head and not has_layer)
