-- One row a stretch of anchors under a candidate layer count: the rule that fits it best.
-- grain: trace_id, n_layers, method, range_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- n_layers    BIGINT   -  candidate layer count
-- method      VARCHAR  -  way of telling passes apart
-- range_no    BIGINT   -  the stretch
-- rule_key    INTEGER  -  the rule
-- n_hits      BIGINT   -  anchors found
-- n_expected  BIGINT   -  anchors of one pass by the rule's formula
-- n_entries   BIGINT   -  entry kernels found
-- first_hit   BIGINT   -  line_no of the first anchor
-- last_hit    BIGINT   -  line_no of the last anchor
-- status      VARCHAR  -  complete, cut_start, cut_end or refused
-- opened      BOOLEAN  -  its begin is in the trace
-- closed      BOOLEAN  -  its end is in the trace
with
    fits as (
        select
            n.trace_id,
            n.n_layers,
            c.method,
            c.range_no,
            c.rule_key,
            c.n_hits,
            r.hits_per_layer * n.n_layers + r.hits_extra as n_expected,
            coalesce(e.n_entries, 0) as n_entries,
            c.first_hit,
            c.last_hit,
            c.opened,
            x.trace_id is not null as closed,
            t.priority,
            c.is_last,
            c.inner_mark,
            coalesce(list_contains(e.n_due, e.n_entries), true) as entered
        from layer_count_candidates as n
        join range_counts as c using (trace_id)
        join boundary_rules as r using (rule_key)
        join trace_rules as t on t.trace_id = n.trace_id and t.rule_key = c.rule_key
        left join
            range_entries as e
            on e.trace_id = c.trace_id
            and e.method = c.method
            and e.range_no = c.range_no
            and e.rule_key = c.rule_key
        left join
            range_ends as x
            on x.trace_id = c.trace_id
            and x.method = c.method
            and x.range_no = c.range_no
            and x.rule_key = c.rule_key
    ),

    judged as (
        select
            *,
            case
                when inner_mark
                then 'refused'
                when opened and entered and n_hits = n_expected
                then 'complete'
                when opened and entered and n_hits < n_expected and is_last and not closed
                then 'cut_end'
                when not opened and range_no = 0 and n_hits <= n_expected and closed
                then 'cut_start'
                else 'refused'
            end as status
        from fits
    )

select
    trace_id,
    n_layers,
    method,
    range_no,
    rule_key,
    n_hits,
    n_expected,
    n_entries,
    first_hit,
    last_hit,
    status,
    opened,
    closed
from judged
qualify
    row_number() over (
        partition by trace_id, n_layers, method, range_no
        order by
            status = 'complete' desc, status <> 'refused' desc, abs(n_hits - n_expected), priority
    )
    = 1
