-- One row a stretch of anchors as a rule, a layer count and a depth would read it. Where depth may
-- change, no cut pass tells where in the loops it is. Words bound no cut pass, but the first one
-- may
-- lack its begin where the trace begins with a layer, and it has all that every other pass has.
-- grain: trace_id, n_layers, depth, resets, method, range_no, rule_key
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- n_layers        BIGINT   -  candidate layer count
-- method          VARCHAR  -  way of telling passes apart
-- range_no        BIGINT   -  the stretch
-- rule_key        INTEGER  -  the rule
-- depth           BIGINT   -  runs of the core of a looped model
-- resets          BOOLEAN  -  each run begins with an entry kernel
-- n_hits          BIGINT   -  anchors found
-- n_expected      BIGINT   -  anchors of one pass by the rule
-- n_blocks        BIGINT   -  blocks of one pass
-- n_entries       BIGINT   -  entry kernels found
-- first_hit       BIGINT   -  line_no of the first anchor
-- last_hit        BIGINT   -  line_no of the last anchor
-- support         DOUBLE   -  part of the rule's patterns that match anything in the trace
-- priority        INTEGER  -  the rule's place among those tried
-- other_depth     BOOLEAN  -  fewer loops than the config says
-- in_layers       BOOLEAN  -  what is too much or missing is whole layers
-- status          VARCHAR  -  complete, cut_start, cut_end or refused
-- opened          BOOLEAN  -  its begin is in the trace
-- opened_by_norm  BOOLEAN  -  only by a norm that layers may run inside, too
-- closed          BOOLEAN  -  its end is in the trace
with
    fits as (
        select
            n.trace_id,
            n.n_layers,
            n.depth,
            n.resets,
            c.method,
            c.range_no,
            c.rule_key,
            c.n_hits,
            n.n_hits as n_expected,
            n.n_blocks,
            n.trace_id not in (select trace_id from trace_visits)
            or coalesce(n.depth = s.depth and not s.depth_varies, false) as sure,
            coalesce(n.depth <> s.depth, false) as other_depth,
            (c.n_hits - n.n_hits) % r.hits_per_layer = 0 as in_layers,
            coalesce(e.n_entries, 0) as n_entries,
            m.support,
            c.first_hit,
            c.last_hit,
            c.opened,
            x.trace_id is not null as closed,
            t.priority,
            c.opened_by_norm,
            c.is_first,
            c.is_last,
            c.inner_mark,
            r.confidence = 'words' as by_words,
            r.last_is = 'epilogue' as has_norm,
            max(abs(c.n_hits - n.n_hits) + c.begin_line - c.prev_anchor - 1) over of_count = 0
            and c.first_hit = c.begin_line as has_all,
            -- A draft of one layer norms what it drafts from beside its embedding.
            coalesce(
                list_contains(e.n_due, e.n_entries)
                or (n.n_layers = 1 and list_contains(e.n_due, e.n_entries - 1)),
                true
            ) as entered
        from pass_shapes as n
        join range_counts as c using (trace_id, rule_key)
        join boundary_rules as r using (rule_key)
        join rule_support as m using (trace_id, rule_key)
        join trace_settings as s using (trace_id)
        join trace_rules as t using (trace_id, rule_key)
        left join range_entries as e using (trace_id, method, range_no, rule_key)
        left join range_ends as x using (trace_id, method, range_no, rule_key)
        window of_count as (partition by c.trace_id, c.method, c.rule_key, n.n_layers)
    )

select
    trace_id,
    n_layers,
    method,
    range_no,
    rule_key,
    depth,
    resets,
    n_hits,
    n_expected,
    n_blocks,
    n_entries,
    first_hit,
    last_hit,
    support,
    priority,
    other_depth,
    in_layers,
    case
        when inner_mark or (by_words and has_norm and not closed)
        then 'refused'
        when opened and entered and n_hits = n_expected and (closed or not other_depth)
        then 'complete'
        when by_words
        then if(not opened and is_first and has_all and closed, 'cut_start', 'refused')
        when opened and entered and n_hits < n_expected and is_last and not closed and sure
        then 'cut_end'
        when not opened and is_first and n_hits <= n_expected and closed and sure
        then 'cut_start'
        else 'refused'
    end as status,
    opened,
    opened_by_norm,
    closed
from fits
