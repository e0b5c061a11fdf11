-- One row a trace: the GPU whose peaks its work is measured against.
-- grain: trace_id
-- keep: store
--
-- trace_id    VARCHAR  -  the trace
-- gpu         VARCHAR  -  name in hardware_peaks; NULL when unknown
-- gpu_source  VARCHAR  -  device name, memory and units, option, file, or unknown
-- peak        VARCHAR  -  which peaks were asked for: datasheet or measured
-- units       BIGINT   -  SMs or CUs of the GPU, else as the trace says; NULL when unknown
-- devices     VARCHAR  -  names of the devices as the trace has them, each once
-- problem     VARCHAR  -  why the GPU is not known, and what helps
with
    described as (
        select
            trace_id,
            if(count(*) = count(gpu) and count(distinct gpu) = 1, any_value(gpu), null) as gpu,
            min(gpu_source) as gpu_source,
            max(units) as units,
            string_agg(distinct device_name, ', ' order by device_name) as devices,
            coalesce(
                min(problem), if(count(distinct gpu) > 1, 'its devices are different GPUs', null)
            ) as problem
        from trace_devices
        where used
        group by trace_id
    ),

    sizes as (select distinct gpu, units from hardware_peaks),

    chosen as (
        select
            t.trace_id,
            coalesce(c.gpu, d.gpu) as gpu,
            case
                when c.gpu is not null
                then c.gpu_source
                when d.gpu is not null
                then d.gpu_source
                else 'unknown'
            end as gpu_source,
            c.peak,
            d.units,
            d.devices,
            coalesce(d.problem, 'the trace names none') as reason
        from raw_facts as t
        cross join gpu_choice as c
        left join described as d using (trace_id)
    )

select
    c.trace_id,
    c.gpu,
    c.gpu_source,
    c.peak,
    coalesce(s.units, c.units) as units,
    c.devices,
    if(
        c.gpu is null,
        'GPU not recognised ('
        || c.reason
        || '): name it with --gpu NAME; `trace-sql hardware` lists them',
        null
    ) as problem
from chosen as c
left join sizes as s using (gpu)
