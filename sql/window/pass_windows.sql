-- One row a pass, complete, cut or refused, with the stretch of the main line it stands on. What
-- does not fit the trace's layer count may be a whole pass of a draft model's.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id     VARCHAR  -  the trace
-- pass_no      BIGINT   -  0-based, in order of time
-- range_no     BIGINT   -  0-based, in order of the line
-- status       VARCHAR  -  complete, cut_start, cut_end or refused
-- rule_key     INTEGER  -  the rule that fits, or fits nearest
-- method       VARCHAR  -  way of telling passes apart
-- n_layers     BIGINT   -  layer count of the pass's model
-- depth        BIGINT   -  runs of the core of a looped model; 1 for others
-- resets       BOOLEAN  -  each run begins with an entry kernel
-- is_draft     BOOLEAN  -  of fewer layers than the trace's model
-- n_hits       BIGINT   -  anchors found
-- n_expected   BIGINT   -  anchors by the rule
-- n_blocks     BIGINT   -  blocks of the whole pass
-- n_entries    BIGINT   -  entry kernels found
-- n_unseen     BIGINT   -  anchors of a cut pass before the begin of the trace
-- prev_anchor  BIGINT   -  line_no of the last anchor before it, or before its lane
-- begin_line   BIGINT   -  line_no of the first activity that can be its own
-- first_hit    BIGINT   -  line_no of its first anchor
-- last_hit     BIGINT   -  line_no of its last anchor
-- next_anchor  BIGINT   -  line_no of the first anchor after it, or the lane's end
-- is_first     BOOLEAN  -  no other stands before it on its lane
-- opened       BOOLEAN  -  its begin is in the trace
-- closed       BOOLEAN  -  its end is in the trace
with
    -- Another count needs a whole pass of the trace's, and the config's word or more than one pass.
    -- Where words bound passes, heads and orders of kernels show whether such a pass is whole.
    others as (
        select f.trace_id, f.method, f.n_layers
        from range_fits as f
        join verdicts as v using (trace_id, method)
        join layer_count_candidates as c on c.trace_id = f.trace_id and c.n_layers = f.n_layers
        join boundary_rules as r using (rule_key)
        where
            f.status = 'complete'
            and v.n_complete > 0
            and if(r.confidence = 'words', f.n_layers < v.n_layers, 2 * f.n_layers <= v.n_layers)
        group by f.trace_id, f.method, f.n_layers
        having count(*) > 1 or bool_or(c.source = 'draft' or r.confidence = 'words')
    ),

    chosen as (
        select f.*, o.n_layers is not null as is_draft
        from range_fits as f
        join verdicts as v using (trace_id, method)
        left join
            others as o
            on o.trace_id = f.trace_id
            and o.method = f.method
            and o.n_layers = f.n_layers
        where f.n_layers = v.n_layers or (o.n_layers is not null and f.status = 'complete')
        qualify
            row_number() over (
                partition by f.trace_id, f.range_no
                order by f.status = 'refused', f.n_layers = v.n_layers desc, f.n_layers desc
            )
            = 1
    )

select
    f.trace_id,
    row_number() over (partition by f.trace_id order by m.start_ns, m.line_no) - 1 as pass_no,
    row_number() over (partition by f.trace_id order by f.range_no) - 1 as range_no,
    f.status,
    f.rule_key,
    f.method,
    f.n_layers,
    f.depth,
    f.resets,
    f.is_draft,
    f.n_hits,
    f.n_expected,
    f.n_blocks,
    f.n_entries,
    if(f.status = 'cut_start', f.n_expected - f.n_hits, 0) as n_unseen,
    p.prev_anchor,
    c.begin_line,
    f.first_hit,
    f.last_hit,
    p.next_anchor,
    c.is_first,
    f.opened,
    f.closed
from chosen as f
join pass_ranges as p using (trace_id, method, range_no)
join range_counts as c using (trace_id, method, range_no, rule_key)
join main_line as m on m.trace_id = f.trace_id and m.line_no = f.first_hit
