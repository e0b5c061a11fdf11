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
    tails as (
        select
            c.trace_id,
            c.method,
            c.range_no,
            c.rule_key,
            any_value(c.begin_line) as begin_line,
            any_value(c.last_hit) as last_hit,
            bool_or(m.is_marker or m.is_head or x.event_id is not null) as has_marker,
            arg_min(m.name, m.line_no) filter (starts_with(m.category, 'gemm')) as gemm,
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
        where c.is_last
        group by c.trace_id, c.method, c.range_no, c.rule_key
    ),

    -- What runs between anchors is no head, of other stretches neither: as an exit gate behind a
    -- loop.
    block_gemms as (
        select distinct t.trace_id, t.method, t.range_no, t.rule_key
        from
            (
                select t.*, m.line_no
                from tails as t
                join main_line as m on m.trace_id = t.trace_id and m.name = t.gemm
            ) as t
        asof left join
            range_counts as o
            on o.trace_id = t.trace_id
            and o.method = t.method
            and o.rule_key = t.rule_key
            and o.first_hit <= t.line_no
        where t.line_no <= o.last_hit or t.line_no between t.begin_line and t.last_hit
    )

select trace_id, method, range_no, rule_key
from range_counts
where not is_last
union all
select t.trace_id, t.method, t.range_no, t.rule_key
from tails as t
left join block_gemms as b using (trace_id, method, range_no, rule_key)
where t.has_marker or (t.gemm is not null and b.rule_key is null and not t.has_layer)
