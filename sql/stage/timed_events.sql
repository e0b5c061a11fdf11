-- One row an event that lasts: a complete event (ph X), or a begin (ph B) with the time to its
-- end.
-- grain: trace_id, event_id
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the event; of a pair the begin
-- cat          VARCHAR  -   category as the profiler wrote it
-- name         VARCHAR  -   name as the profiler wrote it
-- pid          VARCHAR  -   process (or device) label as text
-- tid          VARCHAR  -   thread (or stream) label as text
-- ts_ns        BIGINT   ns  start; NULL without one
-- dur_ns       BIGINT   ns  duration as written; NULL without one or without an end
-- device       BIGINT   -   args.device
-- stream       BIGINT   -   args.stream
-- correlation  BIGINT   -   args.correlation as written; 0 and -1 link nothing
-- external_id  BIGINT   -   args["External id"]
-- args         VARCHAR  -   args as JSON text
select
    e.trace_id,
    e.event_id,
    e.cat,
    e.name,
    e.pid,
    e.tid,
    e.ts_ns,
    coalesce(e.dur_ns, p.dur_ns) as dur_ns,
    e.device,
    e.stream,
    e.correlation,
    e.external_id,
    e.args
from events as e
left join event_pairs as p using (trace_id, event_id)
where e.ph in ('X', 'B')
