-- One row a kind of activity of an operation of attention, with its share by time: one that runs
-- at every tenth call counts a tenth.
-- grain: trace_id, op_no, role, kernel
-- keep: store
--
-- trace_id    VARCHAR  -    the trace
-- op_no       BIGINT   -    the operation
-- role        VARCHAR  -    as in attention_names, such as core; else gemm, copy, fill or other
-- kernel      VARCHAR  -    readable name
-- name        VARCHAR  -    the name as the profiler wrote it that took longest
-- n_launches  BIGINT   -    how often it ran
-- sum_us      DOUBLE   us   sum of durations
-- mean_us     DOUBLE   us   mean duration
-- op_pct      DOUBLE   pct  share of the durations of the operation
with
    named as (
        select
            p.trace_id,
            p.op_no,
            c.role,
            coalesce(k.simplified_name, a.name, a.kind) as kernel,
            coalesce(a.name, a.kind) as name,
            count(*) as n,
            sum(c.dur_ns) as sum_ns
        from attention_populations as p
        join attention_activities as c using (trace_id, call_no)
        join activities as a on a.trace_id = c.trace_id and a.event_id = c.event_id
        left join kernel_categories as k on k.trace_id = a.trace_id and k.name = a.name
        group by all
    )
select
    trace_id,
    op_no,
    role,
    kernel,
    arg_max(name, (sum_ns, name)) as name,
    cast(sum(n) as bigint) as n_launches,
    coalesce(sum(sum_ns), 0) / 1e3 as sum_us,
    sum(sum_ns) / sum(n) / 1e3 as mean_us,
    100 * sum(sum_ns) / nullif(sum(sum(sum_ns)) over (partition by trace_id, op_no), 0) as op_pct
from named
group by trace_id, op_no, role, kernel
