-- One row a call of attention with the least times that its work takes at the peaks of its GPU,
-- and the time that it took.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id      VARCHAR  -   the trace
-- call_no       BIGINT   -   the call
-- flops         DOUBLE   -   floating point operations; 0 where it only moves data
-- bytes         DOUBLE   -   bytes that it must move
-- t_compute_us  DOUBLE   us  operations at the peak that counts
-- t_memory_us   DOUBLE   us  bytes at the bandwidth
-- roofline_us   DOUBLE   us  the longer of both; NULL where one is unknown
-- bound         VARCHAR  -   compute or memory: which of both is longer
-- measured_us   DOUBLE   us  roofline with the measured peak
-- shortest_us   DOUBLE   us  roofline with the larger of printed and measured peak
-- busy_us       DOUBLE   us  union of all its activities; NULL for 0
-- core_us       DOUBLE   us  the part in which kernels attend; NULL for 0
-- problem       VARCHAR  -   why its work is not known
with
    timed as (
        select
            p.trace_id,
            p.call_no,
            w.flops,
            w.bytes,
            -- TFLOPS are 1e6 operations in a us. What only moves data needs no peak.
            if(w.flops = 0, 0, w.flops / p.peak_tflops / 1e6) as t_compute_us,
            if(w.flops = 0, 0, w.flops / p.measured_tflops / 1e6) as t_measured_us,
            if(w.flops = 0, 0, w.flops / p.most_tflops / 1e6) as t_most_us,
            w.bytes / p.hbm_tb_s / 1e6 as t_memory_us,
            nullif(c.busy_ns, 0) / 1e3 as busy_us,
            nullif(c.core_ns, 0) / 1e3 as core_us,
            if(w.flops is null or w.bytes is null, w.problem, null) as problem
        from attention_peaks as p
        join attention_calls as c using (trace_id, call_no)
        join attention_work as w using (trace_id, call_no)
    )

select
    trace_id,
    call_no,
    flops,
    bytes,
    t_compute_us,
    t_memory_us,
    -- Of NULL and a number, greatest() would be the number.
    case
        when t_compute_us >= t_memory_us
        then t_compute_us
        when t_compute_us < t_memory_us
        then t_memory_us
    end as roofline_us,
    case
        when t_compute_us >= t_memory_us
        then 'compute'
        when t_compute_us < t_memory_us
        then 'memory'
    end as bound,
    case
        when t_measured_us >= t_memory_us
        then t_measured_us
        when t_measured_us < t_memory_us
        then t_memory_us
    end as measured_us,
    case
        when t_most_us >= t_memory_us then t_most_us when t_most_us < t_memory_us then t_memory_us
    end as shortest_us,
    busy_us,
    core_us,
    problem
from timed
