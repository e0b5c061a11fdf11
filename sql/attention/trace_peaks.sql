-- One row a trace with a known GPU and a precision: the peak that its products are measured
-- against. Where the GPU has no units for a precision, the next one that it can compute it in
-- counts.
-- grain: trace_id, precision
-- keep: store
--
-- trace_id          VARCHAR  -     the trace
-- precision         VARCHAR  -     bf16, fp16, fp8, fp4, tf32, fp32, fp64 or int8
-- gpu               VARCHAR  -     name in hardware_peaks
-- runs_at           VARCHAR  -     precision that it is computed in
-- peak_tflops       DOUBLE   -     TFLOPS that count, as peak_kind says; NULL when unknown
-- peak_kind         VARCHAR  -     datasheet or measured: what was asked for, else what there is
-- peak_status       VARCHAR  -     sourced, derived, unsourced, measured, file or unknown
-- datasheet_tflops  DOUBLE   -     as printed
-- measured_tflops   DOUBLE   -     as large products reach it
-- hbm_tb_s          DOUBLE   tb_s  memory bandwidth
-- units             BIGINT   -     SMs or CUs; NULL when unknown
-- source            VARCHAR  -     what vouches for the printed peak
-- note              VARCHAR  -     what to know about it
with
    ladder as (
        from
            (
                values
                    ('fp4', ['fp4', 'fp8', 'bf16', 'fp16']),
                    ('fp8', ['fp8', 'bf16', 'fp16']),
                    ('int8', ['int8', 'fp16']),
                    ('bf16', ['bf16', 'fp32']),
                    ('fp16', ['fp16', 'fp32']),
                    ('tf32', ['tf32', 'fp32']),
                    ('fp32', ['fp32']),
                    ('fp64', ['fp64'])
            ) as steps(precision, rungs)
    ),

    able as (
        select
            t.trace_id,
            l.precision,
            t.peak,
            coalesce(h.units, t.units) as unit_count,
            h.* exclude (precision, units),
            h.precision as runs_at,
            list_position(l.rungs, h.precision) as rung
        from trace_gpus as t
        join hardware_peaks as h using (gpu)
        join ladder as l on list_contains(l.rungs, h.precision)
        where h.status <> 'not_supported' or h.measured_tflops is not null
        qualify row_number() over (partition by t.trace_id, l.precision order by rung) = 1
    ),

    chosen as (
        select
            *,
            if(
                peak = 'measured' and measured_tflops is not null or datasheet_tflops is null,
                measured_tflops,
                datasheet_tflops
            ) as peak_tflops,
            case
                when peak_tflops is null
                then null
                when peak = 'measured' and measured_tflops is not null or datasheet_tflops is null
                then 'measured'
                else 'datasheet'
            end as peak_kind
        from able
    )

select
    trace_id,
    precision,
    gpu,
    runs_at,
    peak_tflops,
    peak_kind,
    if(peak_kind = 'measured', 'measured', status) as peak_status,
    datasheet_tflops,
    measured_tflops,
    hbm_tb_s,
    unit_count as units,
    source,
    nullif(
        concat_ws(
            '; ',
            if(runs_at <> precision, 'no ' || precision || ' units: computed in ' || runs_at, null),
            if(
                peak = 'measured' and peak_kind = 'datasheet',
                'no measured ' || runs_at || ' peak known: the printed one',
                null
            ),
            note,
            if(
                precision = 'fp32',
                'TF32 taken as off, with it the peak is '
                || max(peak_tflops) filter (runs_at = 'tf32') over (partition by trace_id),
                null
            )
        ),
        ''
    ) as note
from chosen
