-- One row a device of a trace, in a merged file of a rank: where its time goes, whatever is
-- selected and whether or not the trace can be split. Busy is the length of the union of
-- intervals, and idle is what of the span no activity fills: gaps of one stream are not lost
-- while another runs.
-- grain: trace_id, pid, device
-- keep: store
--
-- trace_id         VARCHAR  -   the trace
-- pid              VARCHAR  -   label of the device; can be NULL
-- device           BIGINT   -   the device; can be NULL
-- rank_label       VARCHAR  -   label of its rank in a merged file; NULL in others
-- n_activities     BIGINT   -   kernels, copies and fills
-- n_kernels        BIGINT   -   kernels
-- n_streams        BIGINT   -   streams they ran on
-- start_ns         BIGINT   ns  first start
-- end_ns           BIGINT   ns  last end
-- span_ns          BIGINT   ns  last end minus first start
-- busy_ns          BIGINT   ns  union of the activities' intervals
-- idle_ns          BIGINT   ns  span without any activity
-- sum_dur_ns       BIGINT   ns  sum of durations that count
-- raw_sum_dur_ns   BIGINT   ns  sum of durations as the file has them, none below 0
-- kernel_busy_ns   BIGINT   ns  union of the kernels' intervals
-- kernel_sum_ns    BIGINT   ns  sum of the kernels' durations
-- avg_kernel_ns    DOUBLE   ns  mean of kernels that have a duration
-- n_comm           BIGINT   -   communication kernels
-- comm_sum_ns      BIGINT   ns  sum of their durations
-- fused_sum_ns     BIGINT   ns  the part in kernels that also compute, as their names say
-- exposed_comm_ns  BIGINT   ns  time in communication kernels while no other kernel runs
with
    placed as (
        select
            a.*,
            coalesce(c.category = 'comm', false) and a.kind = 'kernel' as is_comm,
            is_comm and regexp_matches(a.name, '(?i)fus|norm|gemm|matmul') as is_fused
        from activities as a
        left join name_classes as c using (trace_id, name)
    ),

    -- How far what began before reaches.
    covered as (
        select
            *,
            max(end_ns) over before as any_ns,
            max(case when kind = 'kernel' then end_ns end) over before as kernel_ns,
            max(case when kind = 'kernel' and not is_comm then end_ns end) over before as compute_ns
        from placed
        window
            before as (
                partition by trace_id, pid, device
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            )
    ),

    own as (
        select
            *,
            greatest(end_ns - greatest(start_ns, any_ns), 0) as busy_ns,
            if(
                kind = 'kernel', greatest(end_ns - greatest(start_ns, kernel_ns), 0), 0
            ) as kernel_busy_ns,
            if(
                kind = 'kernel' and not is_comm,
                greatest(end_ns - greatest(start_ns, compute_ns), 0),
                0
            ) as compute_busy_ns
        from covered
    )

select
    trace_id,
    pid,
    device,
    any_value(rank_label) as rank_label,
    count(*) as n_activities,
    count(*) filter (kind = 'kernel') as n_kernels,
    count(distinct stream) as n_streams,
    min(start_ns) as start_ns,
    max(end_ns) as end_ns,
    max(end_ns) - min(start_ns) as span_ns,
    cast(sum(busy_ns) as bigint) as busy_ns,
    max(end_ns) - min(start_ns) - cast(sum(busy_ns) as bigint) as idle_ns,
    cast(coalesce(sum(dur_ns), 0) as bigint) as sum_dur_ns,
    cast(coalesce(sum(greatest(raw_dur_ns, 0)), 0) as bigint) as raw_sum_dur_ns,
    cast(sum(kernel_busy_ns) as bigint) as kernel_busy_ns,
    cast(coalesce(sum(dur_ns) filter (kind = 'kernel'), 0) as bigint) as kernel_sum_ns,
    avg(dur_ns) filter (kind = 'kernel') as avg_kernel_ns,
    count(*) filter (is_comm) as n_comm,
    cast(coalesce(sum(dur_ns) filter (is_comm), 0) as bigint) as comm_sum_ns,
    cast(coalesce(sum(dur_ns) filter (is_fused), 0) as bigint) as fused_sum_ns,
    cast(sum(kernel_busy_ns) - sum(compute_busy_ns) as bigint) as exposed_comm_ns
from own
group by trace_id, pid, device
