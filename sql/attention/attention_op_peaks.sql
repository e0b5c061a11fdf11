-- One row an operation of attention against the peaks of its GPU. Its efficiency is the roofline
-- of all its calls over the time of all: each call counts by its time, which a mean of shares
-- would not do. What has no roofline stays out of both.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id                 VARCHAR  -     the trace
-- op_no                    BIGINT   -     the operation
-- n_rated                  BIGINT   -     calls that have a roofline
-- gpu                      VARCHAR  -     name in hardware_peaks; NULL when unknown
-- precision                VARCHAR  -     of its products
-- peak_tflops              DOUBLE   -     TFLOPS it is measured against
-- peak_kind                VARCHAR  -     datasheet or measured
-- peak_status              VARCHAR  -     what vouches for the peak
-- hbm_tb_s                 DOUBLE   tb_s  bandwidth it is measured against
-- tflops                   DOUBLE   -     FLOPs over busy time, in TFLOPS
-- tb_s                     DOUBLE   tb_s  bytes over busy time
-- roofline_us              DOUBLE   us    sum of the rooflines of its calls
-- bound                    VARCHAR  -     compute or memory: which of both most of that is
-- efficiency_pct           DOUBLE   pct   roofline over busy time of the calls that have one
-- mean_efficiency_pct      DOUBLE   pct   mean of the shares of its calls
-- core_efficiency_pct      DOUBLE   pct   roofline over the time in which kernels attend
-- measured_efficiency_pct  DOUBLE   pct   as efficiency_pct, against measured peaks
-- tiles                    DOUBLE   -     parts of a call that can be computed beside each other
-- tile_us                  DOUBLE   us    sum of the times of whole rounds of tiles
-- launch_us                DOUBLE   us    what a kernel takes at least in this trace
-- floor_us                 DOUBLE   us    sum of the floors of its calls
-- floor_kind               VARCHAR  -     compute, memory, tiles or launch: what most of that is
-- floor_efficiency_pct     DOUBLE   pct   floor over busy time of the calls that have one
-- n_anomalies              BIGINT   -     calls over 110 %
-- peak_note                VARCHAR  -     what to know about the peak
-- problem                  VARCHAR  -     why there is no efficiency, or why to doubt it
with
    rated as (
        select p.op_no, r.*
        from attention_populations as p
        join attention_rooflines as r using (trace_id, call_no)
    ),

    kinds as (
        select trace_id, op_no, arg_max(floor_kind, sum_us) as floor_kind
        from
            (
                select trace_id, op_no, floor_kind, sum(floor_us) as sum_us
                from rated
                where floor_us is not null
                group by trace_id, op_no, floor_kind
            )
        group by trace_id, op_no
    )

select
    r.trace_id,
    r.op_no,
    count(r.roofline_us) as n_rated,
    any_value(r.gpu) as gpu,
    any_value(r.precision) as precision,
    any_value(r.peak_tflops) as peak_tflops,
    any_value(r.peak_kind) as peak_kind,
    any_value(r.peak_status) as peak_status,
    any_value(r.hbm_tb_s) as hbm_tb_s,
    sum(r.flops) / nullif(sum(r.busy_us) filter (r.flops is not null), 0) / 1e6 as tflops,
    sum(r.bytes) / nullif(sum(r.busy_us) filter (r.bytes is not null), 0) / 1e6 as tb_s,
    sum(r.roofline_us) as roofline_us,
    case
        when sum(r.roofline_us) is null
        then null
        when 2 * sum(r.roofline_us) filter (r.bound = 'compute') >= sum(r.roofline_us)
        then 'compute'
        else 'memory'
    end as bound,
    100
    * sum(r.roofline_us)
    / nullif(sum(r.busy_us) filter (r.roofline_us is not null), 0) as efficiency_pct,
    avg(r.efficiency_pct) as mean_efficiency_pct,
    100
    * sum(r.roofline_us)
    / nullif(sum(r.core_us) filter (r.roofline_us is not null), 0) as core_efficiency_pct,
    sum(r.measured_efficiency_pct * r.busy_us) / nullif(
        sum(r.busy_us) filter (r.measured_efficiency_pct is not null), 0
    ) as measured_efficiency_pct,
    avg(r.tiles) as tiles,
    sum(r.tile_us) as tile_us,
    any_value(r.launch_us) as launch_us,
    sum(r.floor_us) as floor_us,
    any_value(k.floor_kind) as floor_kind,
    100
    * sum(r.floor_us)
    / nullif(sum(r.busy_us) filter (r.floor_us is not null), 0) as floor_efficiency_pct,
    count(*) filter (r.anomaly) as n_anomalies,
    any_value(r.peak_note) as peak_note,
    mode(r.problem) as problem
from rated as r
left join kinds as k using (trace_id, op_no)
group by r.trace_id, r.op_no
