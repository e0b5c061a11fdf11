-- One row an activity of the main line: the streams that carry anchors, and whatever shares a
-- graph launch with them. Activities of other streams only overlap it in time. Where two batches
-- run interleaved, each on its own stream, every such stream is a lane of its own.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id   VARCHAR  -   the trace
-- event_id   BIGINT   -   the activity
-- gpu_index  BIGINT   -   0-based position among the trace's activities by (time, tid)
-- device     BIGINT   -   its device
-- stream     BIGINT   -   its stream
-- name       VARCHAR  -   its name
-- start_ns   BIGINT   ns  start
-- end_ns     BIGINT   ns  end
-- graph      BIGINT   -   correlation of the graph launch it belongs to; NULL when eager
-- step       BIGINT   -   event of the step annotation around its launch
-- launched   BOOLEAN  -   its launch is in the trace
-- is_anchor  BOOLEAN  -   an anchor of any rule tried
-- lane       BIGINT   -   its stream, where passes interleave; else 0
with
    anchored as (select distinct trace_id, event_id from anchor_hits where role = 'anchor'),

    switches as (
        select
            h.trace_id,
            h.rule_key,
            a.device,
            a.stream,
            a.stream <> lag(a.stream) over (
                partition by h.trace_id, h.rule_key, a.device order by a.start_ns, a.gpu_index
            ) as switched
        from anchor_hits as h
        join activities as a using (trace_id, event_id)
        where h.role = 'anchor'
    ),

    -- Passes that follow each other on several streams switch once a pass; a batch that runs beside
    -- another switches every few anchors.
    lanes as (
        select distinct s.trace_id, s.device, s.stream
        from switches as s
        semi join
            (
                select trace_id, rule_key, device
                from switches
                group by trace_id, rule_key, device
                having 4 * count(*) filter (switched) >= count(*) and count(*) > 4
            ) as i using (trace_id, rule_key, device)
    ),

    linked as (
        select
            a.*,
            if(l.via_graph, a.correlation, null) as graph,
            l.pid as host_pid,
            l.tid as host_tid,
            l.launch_ns,
            l.event_id is not null as launched,
            x.event_id is not null as is_anchor
        from activities as a
        left join launches as l using (trace_id, event_id)
        left join anchored as x using (trace_id, event_id)
        where a.selected
    ),

    -- A graph may spread over streams: the one with most of its anchors carries the main line,
    -- and carries it between graphs too.
    line_streams as (
        select trace_id, device, stream
        from linked
        where is_anchor and graph is null
        union
        select trace_id, device, arg_max(stream, n_anchors) as stream
        from
            (
                select trace_id, device, graph, stream, count(*) as n_anchors
                from linked
                where is_anchor and graph is not null
                group by trace_id, device, graph, stream
            )
        group by trace_id, device, graph
    ),

    line_graphs as (
        select distinct l.trace_id, l.graph
        from linked as l
        semi join line_streams as s using (trace_id, device, stream)
        where l.graph is not null
    )

select
    l.trace_id,
    l.event_id,
    l.gpu_index,
    l.device,
    l.stream,
    l.name,
    l.start_ns,
    l.end_ns,
    l.graph,
    if(l.launch_ns < p.end_ns, p.event_id, null) as step,
    l.launched,
    l.is_anchor,
    coalesce(n.stream, 0) as lane
from linked as l
left join lanes as n on n.trace_id = l.trace_id and n.device = l.device and n.stream = l.stream
asof left join
    steps as p
    on p.trace_id = l.trace_id
    and p.pid = l.host_pid
    and p.tid = l.host_tid
    and p.start_ns <= l.launch_ns
where
    (l.trace_id, l.device, l.stream) in (select (trace_id, device, stream) from line_streams)
    or (l.trace_id, l.graph) in (select (trace_id, graph) from line_graphs)
