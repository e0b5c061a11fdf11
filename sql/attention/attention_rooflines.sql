-- One row a call of attention against the peaks of its GPU: the least time that its work takes
-- (roofline), the least that a real kernel takes (floor), and how near it came. A floor of tiles
-- or of a launch is never longer than the call took: one that took less had a better kernel.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id                 VARCHAR  -     the trace
-- call_no                  BIGINT   -     the call
-- gpu                      VARCHAR  -     name in hardware_peaks; NULL when unknown
-- precision                VARCHAR  -     of its products; int8+fp16 for two
-- peak_tflops              DOUBLE   -     TFLOPS it is measured against
-- peak_kind                VARCHAR  -     datasheet or measured
-- peak_status              VARCHAR  -     what vouches for the peak: sourced, derived, ...
-- hbm_tb_s                 DOUBLE   tb_s  bandwidth it is measured against
-- flops                    DOUBLE   -     floating point operations; 0 where it only moves data
-- bytes                    DOUBLE   -     bytes that it must move
-- flops_per_byte           DOUBLE   -     arithmetic intensity
-- t_compute_us             DOUBLE   us    operations at the peak
-- t_memory_us              DOUBLE   us    bytes at the bandwidth
-- roofline_us              DOUBLE   us    the longer of both
-- bound                    VARCHAR  -     compute or memory: which of both is longer
-- busy_us                  DOUBLE   us    union of all its activities
-- core_us                  DOUBLE   us    the part in which kernels attend
-- tflops                   DOUBLE   -     operations over busy time, in TFLOPS
-- tb_s                     DOUBLE   tb_s  bytes over busy time
-- efficiency_pct           DOUBLE   pct   roofline over busy time
-- core_efficiency_pct      DOUBLE   pct   roofline over the time in which kernels attend
-- measured_efficiency_pct  DOUBLE   pct   as efficiency_pct, against the measured peak
-- tiles                    DOUBLE   -     parts that SMs or CUs can compute beside each other
-- tile_us                  DOUBLE   us    its operations at the peak, in whole rounds of tiles
-- launch_us                DOUBLE   us    what a kernel takes at least in this trace
-- floor_us                 DOUBLE   us    the longest of roofline, tiles and launch
-- floor_kind               VARCHAR  -     compute, memory, tiles or launch: which is longest
-- floor_efficiency_pct     DOUBLE   pct   floor over busy time
-- anomaly                  BOOLEAN  -     efficiency is over 110 %: work or peak is wrong
-- peak_note                VARCHAR  -     what to know about the peak
-- problem                  VARCHAR  -     why there is no efficiency, or why to doubt it
with
    floored as (
        select
            p.* exclude (problem),
            b.* exclude (trace_id, call_no, problem),
            f.* exclude (trace_id, call_no),
            100 * b.roofline_us / b.busy_us as efficiency_pct,
            -- A call that took less than its tiles or a launch shows that these can be beaten.
            coalesce(b.core_us, b.busy_us) as most_us,
            if(f.tile_us > most_us, most_us, f.tile_us) as in_tiles_us,
            if(f.launch_us > most_us, most_us, f.launch_us) as in_launch_us,
            if(
                b.roofline_us is null, null, greatest(b.roofline_us, in_tiles_us, in_launch_us)
            ) as floor_us,
            b.problem as no_work,
            p.problem as no_peak
        from attention_peaks as p
        join attention_bounds as b using (trace_id, call_no)
        join attention_floors as f using (trace_id, call_no)
    )

select
    trace_id,
    call_no,
    gpu,
    precision,
    peak_tflops,
    peak_kind,
    peak_status,
    hbm_tb_s,
    flops,
    bytes,
    flops / nullif(bytes, 0) as flops_per_byte,
    t_compute_us,
    t_memory_us,
    roofline_us,
    bound,
    busy_us,
    core_us,
    flops / busy_us / 1e6 as tflops,
    bytes / busy_us / 1e6 as tb_s,
    efficiency_pct,
    100 * roofline_us / core_us as core_efficiency_pct,
    100 * measured_us / busy_us as measured_efficiency_pct,
    tiles,
    tile_us,
    launch_us,
    floor_us,
    case
        floor_us
        when roofline_us
        then bound
        when in_tiles_us
        then 'tiles'
        when in_launch_us
        then 'launch'
    end as floor_kind,
    100 * floor_us / busy_us as floor_efficiency_pct,
    coalesce(efficiency_pct > 110, false) as anomaly,
    peak_note,
    nullif(
        concat_ws(
            '; ',
            no_work,
            if(no_work is null and (gpu is null or flops > 0), no_peak, null),
            if(busy_us is null, 'its activities have no time', null),
            if(
                efficiency_pct > 110,
                'over 110 % of the '
                || peak_kind
                || if(
                    shortest_us > 1.1 * busy_us,
                    ' peak: mask, lengths or types are not as assumed, or the peak is too low',
                    ' peak, though not of the other one that is known'
                ),
                null
            )
        ),
        ''
    ) as problem
from floored
