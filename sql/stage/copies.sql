-- One row a copy or fill with what the profiler recorded about it.
-- grain: trace_id, event_id
--
-- trace_id              VARCHAR  -      the trace
-- event_id              BIGINT   -      the activity
-- kind                  VARCHAR  -      copy or fill
-- name                  VARCHAR  -      name as the profiler wrote it
-- device                BIGINT   -      its device
-- stream                BIGINT   -      its stream
-- start_ns              BIGINT   ns     start
-- dur_ns                BIGINT   ns     duration that counts
-- n_bytes               BIGINT   bytes  bytes moved; NULL where none are recorded
-- gigabytes_per_second  DOUBLE   -      recorded rate; NULL where it is none or no time passed
select
    a.trace_id,
    a.event_id,
    a.kind,
    a.name,
    a.device,
    a.stream,
    a.start_ns,
    a.dur_ns,
    try_cast(json_extract_string(e.args, 'bytes') as bigint) as n_bytes,
    case
        when
            a.dur_ns > 0
            and isfinite(
                try_cast(json_extract_string(e.args, '$."memory bandwidth (GB/s)"') as double)
            )
        then try_cast(json_extract_string(e.args, '$."memory bandwidth (GB/s)"') as double)
    end as gigabytes_per_second
from activities as a
join events as e using (trace_id, event_id)
where a.kind <> 'kernel'
