-- One row a stretch of anchors and a boundary rule with an entry kernel: whether layer 0 opens in
-- it. An entry kernel of its own occurs once. One that is the q/k norm too occurs in layer 0 once
-- more than in a first block behind an anchor: there the anchor stands in its place, unless such a
-- kernel follows it at once.
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
    -- Entry kernels are told apart by the running count of them: n_before of an anchor.
    hits as (
        select
            h.trace_id,
            h.rule_key,
            h.role,
            m.line_no,
            m.graph,
            count(case when h.role = 'entry' then 1 end) over (
                partition by h.trace_id, h.rule_key order by m.line_no rows unbounded preceding
            ) as n_before,
            coalesce(
                lead(h.role) over in_stream = 'entry'
                and lead(m.stream_no) over in_stream = m.stream_no + 1,
                false
            ) as is_followed
        from anchor_hits as h
        join main_line as m using (trace_id, event_id)
        where h.role in ('entry', 'anchor')
        window
            in_stream as (
                partition by h.trace_id, h.rule_key, m.device, m.stream order by m.line_no
            )
    ),

    ranges as (
        select c.*, r.entry_ambiguous, r.first_block, r.blocks_per_layer, f.graph as first_graph
        from range_counts as c
        join boundary_rules as r using (rule_key)
        join main_line as f on f.trace_id = c.trace_id and f.line_no = c.first_hit
        where r.has_entry
    ),

    -- A graph launch is a pass only where layer 0 begins in it: pieces of a pass do not.
    entries as (
        select r.trace_id, r.method, r.range_no, r.rule_key, count(*) as n_entries
        from (select distinct trace_id, method, rule_key from ranges) as d
        join hits as h using (trace_id, rule_key)
        asof join
            ranges as r
            on r.trace_id = d.trace_id
            and r.rule_key = d.rule_key
            and r.method = d.method
            and h.line_no < r.first_hit
        where
            h.role = 'entry'
            and h.line_no >= if(r.entry_ambiguous, r.begin_line, r.prev_anchor)
            and (r.method <> 'graphs' or h.graph = r.first_graph)
        group by r.trace_id, r.method, r.range_no, r.rule_key
    ),

    blocks_behind as (
        select
            r.trace_id,
            r.method,
            r.rule_key,
            lead(h.n_before) over in_range - h.n_before + if(h.is_followed, 0, 1) as n_opening,
            (r.first_block + row_number() over in_range - 1) % r.blocks_per_layer as slot_no
        from (select distinct trace_id, method, rule_key from ranges) as d
        join hits as h using (trace_id, rule_key)
        asof join
            ranges as r
            on r.trace_id = d.trace_id
            and r.rule_key = d.rule_key
            and r.method = d.method
            and h.line_no >= r.first_hit
        where h.role = 'anchor' and h.line_no <= r.last_hit and r.opened and r.entry_ambiguous
        window
            in_range as (
                partition by r.trace_id, r.method, r.range_no, r.rule_key order by h.line_no
            )
    ),

    dues as (
        select trace_id, method, rule_key, list(distinct n_opening) as n_due
        from blocks_behind
        where n_opening is not null and slot_no = 0
        group by trace_id, method, rule_key
    )

select
    r.trace_id,
    r.method,
    r.range_no,
    r.rule_key,
    coalesce(e.n_entries, 0) as n_entries,
    coalesce(d.n_due, [1]) as n_due
from ranges as r
left join entries as e using (trace_id, method, range_no, rule_key)
left join dues as d using (trace_id, method, rule_key)
