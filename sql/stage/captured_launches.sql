-- One row a launch recorded while a graph was captured: host calls that launch, copy or fill
-- between the begin and the end of a stream capture. A replay runs them in this order. Empty unless
-- a capture trace was given: only then are the events read for it.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id     VARCHAR  -   the capture trace
-- event_id     BIGINT   -   the host call
-- capture_no   BIGINT   -   0-based capture within the trace
-- ordinal      BIGINT   -   0-based position within the capture
-- n_captured   BIGINT   -   launches of the capture
-- kernel       VARCHAR  -   kernel name where the call records it (AMD does)
-- external_id  BIGINT   -   id shared with the operator
-- pid          VARCHAR  -   host process
-- tid          VARCHAR  -   host thread
-- start_ns     BIGINT   ns  start of the call
with
    begins as (
        select trace_id, pid, tid, ts_ns, event_id
        from events
        where {{ has_capture }} and ph = 'X' and contains(name, 'StreamBeginCapture')
    ),

    ends as (
        select trace_id, pid, tid, ts_ns
        from events
        where {{ has_capture }} and ph = 'X' and contains(name, 'StreamEndCapture')
    ),

    captures as (
        select
            b.trace_id,
            b.pid,
            b.tid,
            b.ts_ns as begin_ns,
            min(e.ts_ns) as end_ns,
            row_number() over (partition by b.trace_id order by b.ts_ns, b.event_id)
            - 1 as capture_no
        from begins as b
        join ends as e using (trace_id, pid, tid)
        where e.ts_ns > b.ts_ns
        group by b.trace_id, b.pid, b.tid, b.ts_ns, b.event_id
    ),

    calls as (
        select e.*, c.capture_no
        from captures as c
        join events as e using (trace_id, pid, tid)
        where
            {{ has_capture }}
            and e.ph = 'X'
            and e.ts_ns > c.begin_ns
            and e.ts_ns < c.end_ns
            and e.correlation > 0
            and regexp_matches(e.name, 'Launch|Memcpy|Memset')
            and not contains(e.name, 'GraphLaunch')
            and e.cat in ('cuda_runtime', 'cuda_driver')
    )

select
    trace_id,
    event_id,
    capture_no,
    row_number() over in_capture - 1 as ordinal,
    count(*) over (partition by trace_id, capture_no) as n_captured,
    json_extract_string(args, 'kernel') as kernel,
    external_id,
    pid,
    tid,
    ts_ns as start_ns
from calls
window in_capture as (partition by trace_id, capture_no order by ts_ns, event_id)
