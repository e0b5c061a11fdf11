-- One row an activity of the main line, in order of time lane by lane, with what can mark the begin
-- of a pass.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id      VARCHAR  -   the trace
-- event_id      BIGINT   -   the activity
-- lane          BIGINT   -   stream of a batch that runs beside another; else 0
-- line_no       BIGINT   -   0-based position on the main line
-- stream_no     BIGINT   -   0-based position on its stream
-- device        BIGINT   -   its device
-- stream        BIGINT   -   its stream
-- name          VARCHAR  -   its name
-- category      VARCHAR  -   its category
-- attends       BOOLEAN  -   attention of any kind
-- start_ns      BIGINT   ns  start
-- end_ns        BIGINT   ns  end
-- graph         BIGINT   -   correlation of the graph launch it belongs to; NULL when eager
-- step          BIGINT   -   event of the step annotation around its launch
-- launched      BOOLEAN  -   its launch is in the trace
-- is_anchor     BOOLEAN  -   an anchor of any rule tried
-- is_marker     BOOLEAN  -   can only stand between passes: embedding, entry norm
-- ambiguous     BOOLEAN  -   as a marker it may be a norm inside a layer
-- is_embedding  BOOLEAN  -   such a kernel that a pass begins with
-- is_head       BOOLEAN  -   a head by its words: what follows belongs to another pass
with
    bounds as (
        select
            h.trace_id,
            h.event_id,
            bool_or(h.role = 'entry') as is_entry,
            bool_and(r.entry_ambiguous) filter (h.role = 'entry') as ambiguous,
            bool_or(h.role = 'exit' and r.confidence = 'words') as is_head
        from anchor_hits as h
        join boundary_rules as r using (rule_key)
        where h.role in ('entry', 'exit')
        group by h.trace_id, h.event_id
    ),

    classed as (
        select
            s.*,
            c.category,
            coalesce(c.attends, false) as attends,
            coalesce(c.begins_pass, false) as begins_pass,
            coalesce(c.begins_pass, false) or coalesce(e.is_entry, false) as may_mark,
            coalesce(e.ambiguous, false) and not coalesce(c.begins_pass, false) as ambiguous,
            coalesce(e.is_head, false) as is_head,
            count(case when s.is_anchor then 1 end) over (partition by s.trace_id) as n_anchors,
            count(case when s.is_anchor then 1 end) over (
                partition by s.trace_id
                order by s.lane, s.start_ns, s.gpu_index
                rows unbounded preceding
            ) as n_anchors_before
        from line_activities as s
        left join name_classes as c using (trace_id, name)
        left join bounds as e using (trace_id, event_id)
    ),

    headed as (
        select trace_id, n_anchors_before, min(gpu_index) as head_index
        from classed
        where is_head
        group by trace_id, n_anchors_before
    ),

    -- A name that turns up in every fourth gap between anchors stands inside layers: two layers of
    -- two anchors are the least that is told apart, but where the model has a draft of one layer.
    -- An entry norm that is also a q/k norm must be rarer still: of n anchors that a cut trace
    -- shows, every layer's norm is in n / 2 - 1 gaps; and where only few layers norm q and k, it is
    -- in more gaps than there are passes of N anchors. Where an embedding is known it is not
    -- needed, and loops have entry norms of their own. An embedding that runs only behind heads is
    -- rare enough.
    rare as (
        select c.trace_id, c.name
        from classed as c
        join trace_settings as s using (trace_id)
        left join headed as d using (trace_id, n_anchors_before)
        where c.may_mark
        group by c.trace_id, c.name
        having
            if(
                bool_or(c.ambiguous),
                4 * count(distinct c.n_anchors_before) + 4 <= any_value(c.n_anchors)
                and any_value(c.n_anchors)
                >= coalesce(any_value(s.num_layers) * (count(distinct c.n_anchors_before) - 1), 0)
                and c.trace_id not in (select trace_id from trace_visits)
                and c.trace_id not in (select trace_id from classed where begins_pass),
                if(any_value(s.draft_layers) is null, 4, 2) * count(distinct c.n_anchors_before)
                <= any_value(c.n_anchors) + 4
                or (
                    bool_and(c.n_anchors_before = 0 or coalesce(d.head_index < c.gpu_index, false))
                    and count(d.head_index) > 0
                )
            )
    )

select
    trace_id,
    event_id,
    lane,
    row_number() over (partition by trace_id order by lane, start_ns, gpu_index) - 1 as line_no,
    row_number() over (partition by trace_id, device, stream order by start_ns, gpu_index)
    - 1 as stream_no,
    device,
    stream,
    name,
    category,
    attends,
    start_ns,
    end_ns,
    graph,
    step,
    launched,
    is_anchor,
    may_mark and (trace_id, name) in (select (trace_id, name) from rare) as is_marker,
    ambiguous,
    begins_pass and (trace_id, name) in (select (trace_id, name) from rare) as is_embedding,
    is_head
from classed
