-- One row a stretch of anchors under a candidate layer count: the rule, and of a looped model the
-- depth, that fits it best.
-- grain: trace_id, n_layers, method, range_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- n_layers    BIGINT   -  candidate layer count
-- method      VARCHAR  -  way of telling passes apart
-- range_no    BIGINT   -  the stretch
-- rule_key    INTEGER  -  the rule
-- depth       BIGINT   -  runs of the core of a looped model
-- resets      BOOLEAN  -  each run begins with an entry kernel
-- n_hits      BIGINT   -  anchors found
-- n_expected  BIGINT   -  anchors of one pass by the rule
-- n_blocks    BIGINT   -  blocks of one pass
-- n_entries   BIGINT   -  entry kernels found
-- first_hit   BIGINT   -  line_no of the first anchor
-- last_hit    BIGINT   -  line_no of the last anchor
-- priority    INTEGER  -  the rule's place among those tried
-- status      VARCHAR  -  complete, cut_start, cut_end or refused
-- opened      BOOLEAN  -  its begin is in the trace
-- closed      BOOLEAN  -  its end is in the trace
with
    -- What whole passes show bounds the cut ones, too: the rule, whether depth changes, and whether
    -- the norm that seems to open a pass does. What a draft may be is no cut pass of the model.
    compared as (
        select
            r.*,
            bool_or(r.status = 'complete') over (
                partition by r.trace_id, r.n_layers, r.depth, r.resets, r.method, r.rule_key
            ) as has_whole,
            bool_or(r.status = 'complete' and r.other_depth) over in_reading
            or (
                bool_or(r.opened_by_norm) over in_reading
                and not bool_or(r.status = 'complete') over in_reading
            )
            or r.n_hits <= max(if(c.source = 'draft', r.n_expected, 0)) over (
                partition by r.trace_id, r.method, r.range_no, r.rule_key
            ) as is_doubtful
        from range_readings as r
        join layer_count_candidates as c using (trace_id, n_layers)
        window in_reading as (partition by r.trace_id, r.n_layers, r.method)
    ),

    proven as (
        select
            * replace (
                if(is_doubtful and status in ('cut_start', 'cut_end'), 'refused', status) as status
            )
        from compared
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
    priority,
    status,
    opened,
    closed
from proven
qualify
    row_number() over (
        partition by trace_id, n_layers, method, range_no
        order by
            status = 'complete' desc,
            status <> 'refused' desc,
            other_depth,
            has_whole desc,
            in_layers desc,
            resets,
            abs(n_hits - n_expected),
            support desc,
            priority
    )
    = 1
