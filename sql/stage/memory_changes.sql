-- One row an allocation or release that the profiler recorded (`[memory]` instants).
-- grain: trace_id, event_id
--
-- trace_id         VARCHAR  -      the trace
-- event_id         BIGINT   -      the event
-- pid              VARCHAR  -      host process
-- tid              VARCHAR  -      host thread
-- ts_ns            BIGINT   ns     time
-- device_type      BIGINT   -      0 host, 1 CUDA, as PyTorch counts them
-- device           BIGINT   -      device of that type
-- delta_bytes      BIGINT   bytes  allocated; below 0 where released
-- allocated_bytes  BIGINT   bytes  allocated in all, after it
-- reserved_bytes   BIGINT   bytes  reserved in all, after it
-- address          VARCHAR  -      address as written
select
    trace_id,
    event_id,
    pid,
    tid,
    ts_ns,
    try_cast(json_extract_string(args, '$."Device Type"') as bigint) as device_type,
    try_cast(json_extract_string(args, '$."Device Id"') as bigint) as device,
    try_cast(json_extract_string(args, 'Bytes') as bigint) as delta_bytes,
    try_cast(json_extract_string(args, '$."Total Allocated"') as bigint) as allocated_bytes,
    try_cast(json_extract_string(args, '$."Total Reserved"') as bigint) as reserved_bytes,
    json_extract_string(args, 'Addr') as address
from events
where name = '[memory]' and ph in ('i', 'I')
