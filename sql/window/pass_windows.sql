-- One row a pass, complete, cut or refused, with the stretch of the main line it stands on.
-- grain: trace_id, pass_no
-- keep: store
--
-- trace_id     VARCHAR  -  the trace
-- pass_no      BIGINT   -  0-based, in order of time
-- status       VARCHAR  -  complete, cut_start, cut_end or refused
-- rule_key     INTEGER  -  the rule that fits, or fits nearest
-- method       VARCHAR  -  way of telling passes apart
-- n_layers     BIGINT   -  layer count of a whole pass
-- n_hits       BIGINT   -  anchors found
-- n_expected   BIGINT   -  anchors by the formula
-- n_entries    BIGINT   -  entry kernels found
-- n_unseen     BIGINT   -  anchors of a cut pass before the begin of the trace
-- prev_anchor  BIGINT   -  line_no of the last anchor before it; -1 without one
-- begin_line   BIGINT   -  line_no of the first activity that can be its own
-- first_hit    BIGINT   -  line_no of its first anchor
-- last_hit     BIGINT   -  line_no of its last anchor
-- next_anchor  BIGINT   -  line_no of the first anchor after it; the line's length without one
-- opened       BOOLEAN  -  its begin is in the trace
-- closed       BOOLEAN  -  its end is in the trace
select
    f.trace_id,
    row_number() over (partition by f.trace_id order by f.range_no) - 1 as pass_no,
    f.status,
    f.rule_key,
    f.method,
    f.n_layers,
    f.n_hits,
    f.n_expected,
    f.n_entries,
    if(f.status = 'cut_start', f.n_expected - f.n_hits, 0) as n_unseen,
    p.prev_anchor,
    c.begin_line,
    f.first_hit,
    f.last_hit,
    p.next_anchor,
    f.opened,
    f.closed
from range_fits as f
join verdicts as v using (trace_id, n_layers, method)
join pass_ranges as p using (trace_id, method, range_no)
join range_counts as c using (trace_id, method, range_no, rule_key)
