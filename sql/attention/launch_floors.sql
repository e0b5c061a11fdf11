-- One row a trace with kernels: the time that a kernel takes whatever it computes. Of 20 kernels
-- one is as short; of fewer kernels, or where that is over 10 us, nothing is known of it.
-- grain: trace_id
-- keep: store
--
-- trace_id   VARCHAR  -   the trace
-- n_kernels  BIGINT   -   kernels with a duration
-- launch_ns  BIGINT   ns  what one of 20 kernels does not exceed; NULL when unknown
select
    trace_id,
    count(*) as n_kernels,
    if(
        count(*) >= 20 and quantile_disc(dur_ns, 0.05) <= 10000, quantile_disc(dur_ns, 0.05), null
    ) as launch_ns
from activities
where kind = 'kernel' and selected and dur_ns > 0
group by trace_id
