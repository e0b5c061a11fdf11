-- One row a stretch of anchors and a boundary rule with an entry kernel: whether layer 0 opens in
-- it. An entry kernel of its own occurs once. One that is the q/k norm too occurs in layer 0 once
-- more than in a first block behind an anchor: there the anchor stands in its place.
-- grain: trace_id, method, range_no, rule_key
-- keep: yes
--
-- trace_id   VARCHAR   -  the trace
-- method     VARCHAR   -  way of telling passes apart
-- range_no   BIGINT    -  the stretch
-- rule_key   INTEGER   -  the boundary rule
-- n_entries  BIGINT    -  entry kernels before its first anchor
-- n_due      BIGINT[]  -  how many may open a pass
with
    entries as (
        select h.trace_id, h.rule_key, m.line_no, m.graph
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'entry'
    ),

    hits as (
        select h.trace_id, h.rule_key, m.line_no
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role = 'anchor'
    ),

    -- A graph launch is a pass only where layer 0 begins in it: pieces of a pass do not.
    counts as (
        select c.trace_id, c.method, c.range_no, c.rule_key, count(e.line_no) as n_entries
        from range_counts as c
        join boundary_rules as r using (rule_key)
        join main_line as f on f.trace_id = c.trace_id and f.line_no = c.first_hit
        left join
            entries as e
            on e.trace_id = c.trace_id
            and e.rule_key = c.rule_key
            and e.line_no < c.first_hit
            and e.line_no >= if(r.entry_ambiguous, c.begin_line, c.prev_anchor)
            and (c.method <> 'graphs' or e.graph = f.graph)
        where r.has_entry
        group by c.trace_id, c.method, c.range_no, c.rule_key
    ),

    spans as (
        select
            c.trace_id,
            c.method,
            c.rule_key,
            a.line_no,
            lead(a.line_no) over in_range as next_line,
            (r.first_block + row_number() over in_range - 1) % r.blocks_per_layer as slot_no
        from range_counts as c
        join boundary_rules as r using (rule_key)
        join
            hits as a
            on a.trace_id = c.trace_id
            and a.rule_key = c.rule_key
            and a.line_no between c.first_hit and c.last_hit
        where c.opened and r.entry_ambiguous
        window
            in_range as (
                partition by c.trace_id, c.method, c.range_no, c.rule_key order by a.line_no
            )
    ),

    first_blocks as (
        select s.trace_id, s.method, s.rule_key, s.line_no, count(e.line_no) as n_inner
        from spans as s
        left join
            entries as e
            on e.trace_id = s.trace_id
            and e.rule_key = s.rule_key
            and e.line_no > s.line_no
            and e.line_no < s.next_line
        where s.next_line is not null and s.slot_no = 0
        group by s.trace_id, s.method, s.rule_key, s.line_no
    ),

    dues as (
        select trace_id, method, rule_key, list(distinct n_inner + 1) as n_due
        from first_blocks
        group by trace_id, method, rule_key
    )

select c.trace_id, c.method, c.range_no, c.rule_key, c.n_entries, coalesce(d.n_due, [1]) as n_due
from counts as c
left join dues as d using (trace_id, method, rule_key)
