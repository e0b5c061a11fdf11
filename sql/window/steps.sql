-- One row a host annotation that marks a model step and is not inside another such step on its
-- thread: the outermost marker says which launches belong to the step.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -   the trace
-- event_id  BIGINT   -   the annotation
-- name      VARCHAR  -   name as written
-- pid       VARCHAR  -   host process
-- tid       VARCHAR  -   host thread
-- start_ns  BIGINT   ns  start
-- end_ns    BIGINT   ns  end
with
    marked as (
        select
            *,
            coalesce(
                start_ns < max(end_ns) over (
                    partition by trace_id, pid, tid
                    order by start_ns, end_ns desc
                    rows between unbounded preceding and 1 preceding
                ),
                false
            ) as nested
        from annotations
        where side = 'host' and kind = 'step'
    ),

    grouped as (
        select
            *,
            count(case when not nested then 1 end) over (
                partition by trace_id, pid, tid order by start_ns, end_ns desc
            ) as step_no
        from marked
    )

select
    trace_id,
    arg_min(event_id, start_ns) filter (not nested) as event_id,
    arg_min(name, start_ns) filter (not nested) as name,
    pid,
    tid,
    min(start_ns) as start_ns,
    max(end_ns) as end_ns
from grouped
group by trace_id, pid, tid, step_no
