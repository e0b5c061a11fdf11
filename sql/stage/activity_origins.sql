-- One row an activity whose place in the host program is known: by its own launch, or for a
-- graph replay by the launch at the same position of a capture trace given beside it. A capture
-- counts only when it has as many launches as the replay has activities, and the same kernel
-- names wherever it records names.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id       VARCHAR  -   the trace
-- event_id       BIGINT   -   the activity
-- source         VARCHAR  -   launch or capture
-- host_trace_id  VARCHAR  -   the trace that holds the host program
-- host_event_id  BIGINT   -   the host call there
-- pid            VARCHAR  -   host process
-- tid            VARCHAR  -   host thread
-- launch_ns      BIGINT   ns  start of the call, in the clock of the host trace
-- external_id    BIGINT   -   id shared with the operator, in the host trace
-- rank_label     VARCHAR  -   label of its rank in a merged file; NULL in others
with
    replayed as (
        select
            a.trace_id,
            a.event_id,
            a.name,
            a.correlation,
            s.capture_trace_id,
            l.n_in_launch,
            row_number() over (
                partition by a.trace_id, a.correlation order by a.start_ns, a.gpu_index
            )
            - 1 as ordinal
        from activities as a
        join trace_settings as s using (trace_id)
        join launches as l using (trace_id, event_id)
        where s.capture_trace_id is not null and l.via_graph
    ),

    paired as (
        select
            r.trace_id,
            r.event_id,
            r.correlation,
            c.trace_id as host_trace_id,
            c.capture_no,
            c.event_id as host_event_id,
            c.pid,
            c.tid,
            c.start_ns as launch_ns,
            c.external_id,
            coalesce(c.kernel = r.name, true) as same
        from replayed as r
        join
            captured_launches as c
            on c.trace_id = r.capture_trace_id
            and c.n_captured = r.n_in_launch
            and c.ordinal = r.ordinal
    ),

    proven as (
        select trace_id, correlation, min(capture_no) as capture_no
        from
            (
                select trace_id, correlation, capture_no
                from paired
                group by trace_id, correlation, capture_no
                having bool_and(same)
            )
        group by trace_id, correlation
    )

select
    p.trace_id,
    p.event_id,
    'capture' as source,
    p.host_trace_id,
    p.host_event_id,
    p.pid,
    p.tid,
    p.launch_ns,
    p.external_id,
    null as rank_label
from paired as p
join proven as v using (trace_id, correlation, capture_no)
union all
select
    l.trace_id,
    l.event_id,
    'launch' as source,
    l.trace_id as host_trace_id,
    l.launch_event_id as host_event_id,
    l.pid,
    l.tid,
    l.launch_ns,
    coalesce(nullif(a.external_id, 0), l.external_id) as external_id,
    a.rank_label
from launches as l
join activities as a using (trace_id, event_id)
where not l.via_graph
