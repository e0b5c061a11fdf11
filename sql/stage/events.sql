-- One row an element of `traceEvents`, in file order, nothing left out.
-- grain: trace_id, event_id
--
-- trace_id          VARCHAR  -   the trace
-- event_id          BIGINT   -   0-based index in traceEvents
-- ph                VARCHAR  -   phase letter of the Chrome format (X complete, i instant, ...)
-- cat               VARCHAR  -   category as the profiler wrote it
-- name              VARCHAR  -   name as the profiler wrote it
-- pid               VARCHAR  -   process (or device) label as text
-- tid               VARCHAR  -   thread (or stream) label as text
-- ts_ns             BIGINT   ns  start in the file's own clock, exact; NULL without one
-- dur_ns            BIGINT   ns  duration, exact; NULL without one
-- id                VARCHAR  -   id of a flow arrow or async event
-- device            BIGINT   -   args.device
-- stream            BIGINT   -   args.stream
-- correlation       BIGINT   -   args.correlation as written; 0 and -1 link nothing
-- external_id       BIGINT   -   args["External id"]
-- python_id         BIGINT   -   args["Python id"]
-- python_parent_id  BIGINT   -   args["Python parent id"]
-- args              VARCHAR  -   args as JSON text
-- extra             VARCHAR  -   JSON text of all that has no column; NULL when nothing
select
    trace_id,
    event_id,
    ph,
    cat,
    name,
    pid,
    tid,
    ts_ns,
    dur_ns,
    id,
    device,
    stream,
    correlation,
    external_id,
    python_id,
    python_parent_id,
    args,
    extra
from raw_events
