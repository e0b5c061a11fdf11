-- One row a trace with device activities: the time that shares are taken of. Of several selected
-- devices it is the sum over them.
-- grain: trace_id
-- keep: yes
--
-- trace_id  VARCHAR  -   the trace
-- wall_ns   BIGINT   ns  last end minus first start of the selected activities
-- busy_ns   BIGINT   ns  union of their intervals
with
    covered as (
        select
            trace_id,
            pid,
            device,
            start_ns,
            end_ns,
            max(end_ns) over (
                partition by trace_id, pid, device
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from activities
        where selected
    ),

    spans as (
        select
            trace_id,
            max(end_ns) - min(start_ns) as wall_ns,
            sum(greatest(end_ns - greatest(start_ns, covered_ns), 0)) as busy_ns
        from covered
        group by trace_id, pid, device
    )

select trace_id, cast(sum(wall_ns) as bigint) as wall_ns, cast(sum(busy_ns) as bigint) as busy_ns
from spans
group by trace_id
