-- One row a stretch of anchors that may be one pass, for each way of telling passes apart:
-- markers (embedding or entry norm between two anchors), graphs (another graph launch), steps
-- (another step annotation), counts (every N layers from a given first anchor).
-- grain: trace_id, method, range_no
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- method          VARCHAR  -  markers, graphs, steps or counts
-- range_no        BIGINT   -  0-based, in order of the line
-- prev_anchor     BIGINT   -  line_no of the last anchor before the range, or before its lane
-- first_anchor    BIGINT   -  line_no of its first anchor
-- last_anchor     BIGINT   -  line_no of its last anchor
-- next_anchor     BIGINT   -  line_no of the first anchor after it; without one, the lane's end
-- opened          BOOLEAN  -  its begin is in the trace: a marker, launch or step begins it
-- opened_by_norm  BOOLEAN  -  only by a norm that layers may run inside, too
-- inner_mark      BOOLEAN  -  a marker stands between two of its anchors
-- is_first        BOOLEAN  -  no range stands before it
-- is_last         BOOLEAN  -  no range follows
with
    line as (
        select
            trace_id,
            lane,
            line_no,
            graph,
            step,
            is_anchor,
            count(case when is_marker then 1 end) over (
                partition by trace_id, lane order by line_no rows unbounded preceding
            ) as n_markers,
            count(case when is_marker and not ambiguous then 1 end) over (
                partition by trace_id, lane order by line_no rows unbounded preceding
            ) as n_sure_markers,
            min(line_no) over (partition by trace_id, lane) as lane_begin,
            max(line_no) over (partition by trace_id, lane) + 1 as lane_end
        from main_line
    ),

    anchor_rows as (
        select
            *,
            row_number() over in_line - 1 as anchor_no,
            lag(line_no, 1, lane_begin - 1) over in_line as prev_anchor,
            lead(line_no, 1, lane_end) over in_line as next_anchor,
            n_markers > coalesce(lag(n_markers) over in_line, 0) as marked,
            n_sure_markers > coalesce(lag(n_sure_markers) over in_line, 0) as surely_marked,
            graph is not null and coalesce(graph <> lag(graph) over in_line, true) as relaunched,
            step is not null and coalesce(step <> lag(step) over in_line, true) as stepped
        from line
        where is_anchor
        window in_line as (partition by trace_id, lane order by line_no)
    ),

    -- A given first anchor and layer count cut by counting, and nothing else does.
    counted as (
        select t.trace_id, any_value(t.num_layers) * max(r.hits_per_layer) as n_hits
        from trace_settings as t
        join trace_rules as x using (trace_id)
        join boundary_rules as r using (rule_key)
        where t.anchor_offset is not null and t.num_layers is not null
        group by t.trace_id
    ),

    starts as (
        select
            a.*,
            m.method,
            case
                m.method
                when 'markers'
                then a.marked
                when 'graphs'
                then a.relaunched
                when 'steps'
                then a.stepped
                else a.anchor_no % c.n_hits = 0
            end as starts_range
        from anchor_rows as a
        left join counted as c using (trace_id)
        join
            (values ('markers'), ('graphs'), ('steps'), ('counts')) as m(method)
            on (m.method = 'counts') = (c.n_hits is not null)
    ),

    numbered as (
        select
            *,
            count(case when starts_range or prev_anchor < lane_begin then 1 end) over in_line
            - 1 as range_no
        from starts
        window in_line as (partition by trace_id, method order by line_no rows unbounded preceding)
    )

select
    trace_id,
    method,
    range_no,
    min(prev_anchor) as prev_anchor,
    min(line_no) as first_anchor,
    max(line_no) as last_anchor,
    max(next_anchor) as next_anchor,
    arg_min(starts_range, line_no) as opened,
    method = 'markers' and arg_min(marked and not surely_marked, line_no) as opened_by_norm,
    bool_or(marked and not starts_range and method <> 'counts') as inner_mark,
    min(prev_anchor) < any_value(lane_begin) as is_first,
    max(next_anchor) = any_value(lane_end) as is_last
from numbered
group by trace_id, method, range_no
