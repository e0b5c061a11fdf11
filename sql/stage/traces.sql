-- One row a trace of the store: what the file is and what was said about it.
-- grain: trace_id
--
-- trace_id         VARCHAR                -      first digits of a hash of the file's content
-- name             VARCHAR                -      file name without its endings
-- run              VARCHAR                -      traces that belong together
-- tags             MAP(VARCHAR, VARCHAR)  -      what was said with --tag
-- path             VARCHAR                -      where the file was
-- config_path      VARCHAR                -      config.json given for it
-- rank             INTEGER                -      rank of the process; NULL when unknown
-- rank_source      VARCHAR                -      header, name or unknown
-- world_size       INTEGER                -      ranks of the run; NULL when unknown
-- gpu              VARCHAR                -      device names
-- vendor           VARCHAR                -      nvidia, amd or unknown
-- n_devices        INTEGER                -      devices with activities
-- n_events         BIGINT                 -      elements of traceEvents
-- n_device_events  BIGINT                 -      device activities
-- start_ns         BIGINT                 ns     earliest time; what the Perfetto UI shows as zero
-- span_ns          BIGINT                 ns     from the first work of any kind to the latest end
-- base_time_ns     BIGINT                 ns     epoch time that its times count from, as it says
-- complete         BOOLEAN                -      nothing was lost, not even text around the trace
-- n_repaired       BIGINT                 -      places repaired; the view losses has each
-- n_lost           BIGINT                 -      places of which nothing could be kept
-- file_bytes       BIGINT                 bytes  size of the file
-- raw_bytes        BIGINT                 bytes  size of its text
-- warnings         VARCHAR                -      JSON list: warnings in the file, what was noticed
-- metadata         VARCHAR                -      JSON text of all top-level keys but traceEvents
-- ingested_at      TIMESTAMP              -      when it was flattened
select
    f.trace_id,
    f.name,
    s.run,
    s.tags,
    f.path,
    s.config_path,
    f.rank,
    f.rank_source,
    f.world_size,
    f.gpu,
    f.vendor,
    f.n_devices,
    f.n_events,
    f.n_device_events,
    f.min_ts_ns as start_ns,
    f.max_end_ns - f.first_ns as span_ns,
    f.base_time_ns,
    f.complete,
    f.n_repaired,
    f.n_lost,
    f.file_bytes,
    f.raw_bytes,
    f.warnings,
    f.metadata,
    f.ingested_at
from raw_facts as f
left join raw_settings as s using (trace_id)
