-- One row a stretch of anchors that may be one pass, by each way of telling passes apart: markers
-- (embedding, entry norm, head) or a graph launch or step between two anchors; counts of N layers.
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
-- n_attending     BIGINT   -  anchors behind which attention runs, up to the next anchor
-- last_attends    BOOLEAN  -  its last anchor is one of them
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
            count(case when attends then 1 end) over so_far as n_attentions,
            count(case when attends then 1 end) over in_lane as n_lane_attentions,
            bool_or(is_head) over in_lane as has_heads,
            graph is not null and bool_or(attends) over (partition by trace_id, graph) as in_whole,
            count(case when is_marker or is_head then 1 end) over so_far as n_markers,
            count(case when (is_marker or is_head) and not ambiguous then 1 end) over so_far
            as n_sure,
            min(line_no) over in_lane as lane_begin,
            max(line_no) over in_lane + 1 as lane_end
        from main_line
        window
            in_lane as (partition by trace_id, lane),
            so_far as (partition by trace_id, lane order by line_no rows unbounded preceding)
    ),

    anchor_rows as (
        select
            *,
            row_number() over in_line - 1 as anchor_no,
            lag(line_no, 1, lane_begin - 1) over in_line as prev_anchor,
            lead(line_no, 1, lane_end) over in_line as next_anchor,
            n_markers > coalesce(lag(n_markers) over in_line, 0) as marked,
            lead(n_attentions, 1, n_lane_attentions) over in_line > n_attentions as attending,
            n_sure > coalesce(lag(n_sure) over in_line, 0) as surely_marked,
            graph is not null and coalesce(graph <> lag(graph) over in_line, true) as relaunched,
            step is not null and coalesce(step <> lag(step) over in_line, true) as stepped,
            has_heads and (step is not null or (graph is not null and in_whole)) as begun
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
                then a.marked or (a.prev_anchor < a.lane_begin and a.begun)
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
    count(case when attending then 1 end) as n_attending,
    arg_max(attending, line_no) as last_attends,
    min(prev_anchor) < any_value(lane_begin) as is_first,
    max(next_anchor) = any_value(lane_end) as is_last
from numbered
group by trace_id, method, range_no
