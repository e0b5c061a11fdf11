-- One row a device that a trace describes, of the first 256, and the GPU that it is. A name
-- counts where memory and units agree, the longest where several do; one without a number names
-- no model, so that memory and units must tell.
-- grain: trace_id, position
-- keep: store
--
-- trace_id      VARCHAR  -      the trace
-- position      INTEGER  -      0-based position in the file's list
-- device        BIGINT   -      id of the device; NULL when it has none
-- used          BOOLEAN  -      activities ran on it, as far as ids tell
-- device_name   VARCHAR  -      name as the profiler wrote it; can be empty or NULL
-- memory_bytes  DOUBLE   bytes  memory; NULL when not told
-- units         BIGINT   -      SMs or CUs; NULL when not told
-- gpu           VARCHAR  -      name in hardware_peaks; NULL when unknown
-- gpu_source    VARCHAR  -      device name, or memory and units
-- problem       VARCHAR  -      why the GPU is not known
with
    lists as (
        select
            trace_id,
            vendor,
            json_extract(
                if(json_valid(metadata), metadata, null), '$.deviceProperties[*]'
            ) as entries
        from raw_facts
    ),

    described as (
        select
            trace_id,
            vendor,
            cast(number - 1 as integer) as position,
            try_cast(json_extract_string(entries[number], '$.id') as bigint) as device,
            trim(json_extract_string(entries[number], '$.name')) as device_name,
            try_cast(
                json_extract_string(entries[number], '$.totalGlobalMem') as double
            ) as memory_bytes,
            try_cast(json_extract_string(entries[number], '$.numSms') as bigint) as units,
            coalesce(regexp_matches(device_name, '[0-9]'), false) as has_name,
            coalesce(regexp_matches(device_name, '(?i)\bMIG\b'), false) as is_slice
        from (select *, unnest(range(1, least(len(entries), 256) + 1)) as number from lists)
    ),

    compared as (
        select
            d.*,
            h.gpu,
            case
                when d.has_name
                then length(regexp_extract(d.device_name, h.match))
                when d.vendor = h.vendor and d.memory_bytes is not null and d.units = h.units
                then 1
                else 0
            end as alike,
            not d.is_slice
            and coalesce(d.units = h.units, true)
            and coalesce(
                d.memory_bytes between 0.93e9 * h.memory_gb and 1.1e9 * h.memory_gb, true
            ) as fits,
            max(if(fits, alike, 0)) over (partition by d.trace_id, d.position) as most
        from described as d
        cross join (select distinct gpu, vendor, match, units, memory_gb from hardware_peaks) as h
    ),

    found as (
        select
            trace_id,
            position,
            max(alike) > 0 as is_known,
            list(gpu order by gpu) filter (fits and alike > 0 and alike = most) as gpus
        from compared
        group by trace_id, position
    ),

    -- The ids that profilers give activities need not be those of the list (ROCm).
    active as (
        select distinct d.trace_id, d.device
        from device_times as d
        join trace_settings as s using (trace_id)
        where s.device is null or s.device = d.device
    )

select
    d.trace_id,
    d.position,
    d.device,
    a.device is not null
    or not bool_or(a.device is not null) over (partition by d.trace_id) as used,
    d.device_name,
    d.memory_bytes,
    d.units,
    if(len(f.gpus) = 1, f.gpus[1], null) as gpu,
    if(d.has_name, 'device name', 'memory and units') as gpu_source,
    case
        when len(f.gpus) = 1
        then null
        when len(f.gpus) > 1
        then 'it can be ' || array_to_string(f.gpus, ' or ')
        when d.is_slice
        then 'a slice: ' || left(d.device_name, 60)
        when not d.has_name
        then 'it has no name that tells'
        else left(d.device_name, 60) || if(f.is_known, ' of another size', '')
    end as problem
from described as d
join found as f using (trace_id, position)
left join active as a on a.trace_id = d.trace_id and a.device = d.device
