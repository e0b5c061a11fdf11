-- One row an activity of the main line: the streams that carry anchors, and whatever shares a
-- graph launch with an anchor. Activities of other streams only overlap it in time.
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
-- is_anchor  BOOLEAN  -   an anchor of any rule tried
with
    anchored as (select distinct trace_id, event_id from anchor_hits where role = 'anchor'),

    linked as (
        select
            a.*,
            if(l.via_graph, a.correlation, null) as graph,
            l.pid as host_pid,
            l.tid as host_tid,
            l.launch_ns,
            x.event_id is not null as is_anchor
        from activities as a
        left join launches as l using (trace_id, event_id)
        left join anchored as x using (trace_id, event_id)
        where a.selected
    ),

    anchor_streams as (
        select distinct trace_id, device, stream from linked where is_anchor and graph is null
    ),

    anchor_graphs as (
        select distinct trace_id, graph from linked where is_anchor and graph is not null
    ),

    -- The stream that carries a graph's anchors carries the main line between graphs too: eager
    -- kernels, and graph pieces without an anchor.
    graph_streams as (
        select a.trace_id, a.device, arg_max(a.stream, a.n) as stream
        from
            (
                select l.trace_id, l.device, l.stream, l.graph, count(*) as n
                from linked as l
                join anchor_graphs as g on g.trace_id = l.trace_id and g.graph = l.graph
                where l.is_anchor
                group by all
            ) as a
        group by a.trace_id, a.device, a.graph
    ),

    line as (
        select l.*
        from linked as l
        where
            (l.trace_id, l.graph) in (select (trace_id, graph) from anchor_graphs)
            or (l.trace_id, l.device, l.stream) in (
                select (trace_id, device, stream)
                from anchor_streams
                union
                select (trace_id, device, stream)
                from graph_streams
            )
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
    if(l.launch_ns < s.end_ns, s.event_id, null) as step,
    l.is_anchor
from line as l
asof left join
    steps as s
    on s.trace_id = l.trace_id
    and s.pid = l.host_pid
    and s.tid = l.host_tid
    and s.start_ns <= l.launch_ns
