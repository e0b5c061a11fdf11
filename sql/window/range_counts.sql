-- One row a stretch of anchors and a boundary rule: how often the rule's kernels occur in it.
-- grain: trace_id, method, range_no, rule_key
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- method      VARCHAR  -  way of telling passes apart
-- range_no    BIGINT   -  the stretch
-- rule_key    INTEGER  -  the boundary rule
-- n_hits      BIGINT   -  anchors of the rule in the stretch
-- n_entries   BIGINT   -  entry kernels between the stretch before and its first anchor
-- first_hit   BIGINT   -  line_no of the rule's first anchor
-- last_hit    BIGINT   -  line_no of the rule's last anchor
-- closed      BOOLEAN  -  its end is in the trace: another stretch or an epilogue follows
-- inner_mark  BOOLEAN  -  a marker stands between two of its anchors
with
    hits as (
        select h.trace_id, h.rule_key, h.role, m.line_no, m.name
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
    ),

    counts as (
        select
            r.trace_id,
            r.method,
            r.range_no,
            h.rule_key,
            count(*) as n_hits,
            min(h.line_no) as first_hit,
            max(h.line_no) as last_hit,
            any_value(r.prev_anchor) as prev_anchor,
            any_value(r.first_anchor) as first_anchor,
            any_value(r.next_anchor) as next_anchor,
            any_value(r.is_last) as is_last,
            bool_or(r.inner_mark) as inner_mark
        from pass_ranges as r
        join
            hits as h
            on h.trace_id = r.trace_id
            and h.role = 'anchor'
            and h.line_no between r.first_anchor and r.last_anchor
        group by r.trace_id, r.method, r.range_no, h.rule_key
    ),

    entries as (
        select c.trace_id, c.method, c.range_no, c.rule_key, count(*) as n_entries
        from counts as c
        join
            hits as h
            on h.trace_id = c.trace_id
            and h.rule_key = c.rule_key
            and h.role = 'entry'
            and h.line_no > c.prev_anchor
            and h.line_no < c.first_hit
        group by c.trace_id, c.method, c.range_no, c.rule_key
    ),

    block_names as (
        select distinct c.trace_id, c.method, c.range_no, c.rule_key, m.name
        from counts as c
        join
            main_line as m
            on m.trace_id = c.trace_id
            and m.line_no between c.first_hit and c.last_hit
        where c.is_last
    ),

    -- After the last anchor of the trace: names that no block before has (LM head, sampling)
    -- and nothing that only a layer does.
    tails as (
        select
            c.trace_id,
            c.method,
            c.range_no,
            c.rule_key,
            bool_or(b.name is null)
            and not bool_or(
                t.category in (
                    'attention',
                    'mla',
                    'linear_attention',
                    'rope',
                    'kv_cache',
                    'activation',
                    'moe',
                    'moe_routing'
                )
            ) as has_tail
        from counts as c
        join main_line as t on t.trace_id = c.trace_id and t.line_no > c.last_hit
        left join
            block_names as b
            on b.trace_id = c.trace_id
            and b.method = c.method
            and b.range_no = c.range_no
            and b.rule_key = c.rule_key
            and b.name = t.name
        where c.is_last
        group by c.trace_id, c.method, c.range_no, c.rule_key
    )

select
    c.trace_id,
    c.method,
    c.range_no,
    c.rule_key,
    c.n_hits,
    coalesce(e.n_entries, 0) as n_entries,
    c.first_hit,
    c.last_hit,
    not c.is_last or coalesce(t.has_tail, false) as closed,
    c.inner_mark
from counts as c
left join entries as e using (trace_id, method, range_no, rule_key)
left join tails as t using (trace_id, method, range_no, rule_key)
