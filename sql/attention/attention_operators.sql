-- One row an operator that is a call of attention: of nested ones the outermost whose arguments
-- can be read, where there is none the outermost that is known, else that which sounds like one.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id    VARCHAR  -   the trace that holds it
-- event_id    BIGINT   -   the operator
-- name        VARCHAR  -   its name
-- pid         VARCHAR  -   host process
-- tid         VARCHAR  -   host thread
-- start_ns    BIGINT   ns  start
-- end_ns      BIGINT   ns  end
-- args        VARCHAR  -   its arguments as JSON text
-- needs_core  BOOLEAN  -   a call only where one of its kernels is known to attend
with
    found as (
        select
            e.trace_id,
            e.event_id,
            e.name,
            e.pid,
            e.tid,
            e.ts_ns as start_ns,
            e.ts_ns + e.dur_ns as end_ns,
            e.args,
            f.needs is not null as needs_core,
            case
                when f.needs is not null or f.implementation = 'cache'
                then 1
                when
                    f.rank = 2
                    and json_array_length(e.args, '$."Input Dims"[' || coalesce(f.q, 0) || ']') > 1
                then 3
                else 2
            end as level
        from timed_events as e
        join operator_families as f using (trace_id, name)
        where is_operator(e.cat) and e.dur_ns > 0 and f.rank > 0
    ),

    -- Of a level, those that no other of the level is around.
    outermost as (
        select *
        from found
        window
            before as (
                partition by trace_id, pid, tid, level
                order by start_ns, end_ns desc, event_id
                rows between unbounded preceding and 1 preceding
            )
        qualify
            coalesce(end_ns > max(end_ns) over before or start_ns >= max(end_ns) over before, true)
    ),

    higher as (
        select *, 1 as below
        from outermost
        where level > 1
        union all
        select *, 2 as below
        from outermost
        where level > 2
    )

select o.trace_id, o.event_id, o.name, o.pid, o.tid, o.start_ns, o.end_ns, o.args, o.needs_core
from outermost as o
asof left join
    higher as inside
    on inside.trace_id = o.trace_id
    and inside.pid = o.pid
    and inside.tid = o.tid
    and inside.below = o.level
    and inside.start_ns >= o.start_ns
asof left join
    higher as around
    on around.trace_id = o.trace_id
    and around.pid = o.pid
    and around.tid = o.tid
    and around.below = o.level
    and around.start_ns <= o.start_ns
where coalesce(inside.start_ns >= o.end_ns, true) and coalesce(around.end_ns <= o.start_ns, true)
