-- One row a visit of a layer in a pass. Busy is the length of the union of its activities'
-- intervals, sum the sum of their durations.
-- grain: trace_id, pass_no, loop_no, layer_no
-- keep: store
--
-- trace_id           VARCHAR    -   the trace
-- pass_no            BIGINT     -   0-based pass
-- loop_no            BIGINT     -   0-based visit of the layers
-- layer_no           BIGINT     -   0-based layer
-- layer_type         VARCHAR    -   type from the config, else from its kernels
-- layer_type_source  VARCHAR    -   config or kernels
-- compress_ratio     BIGINT     -   from the config; NULL where it has none
-- roles              VARCHAR[]  -   parts of the type, from the config; else NULL
-- complete           BOOLEAN    -   all of its blocks are in the trace
-- usual              BOOLEAN    -   its kernel order is the commonest of its type in the pass
-- first_event_id     BIGINT     -   first activity by time
-- last_event_id      BIGINT     -   last activity by time
-- start_ns           BIGINT     ns  first start
-- end_ns             BIGINT     ns  last end
-- wall_ns            BIGINT     ns  last end minus first start
-- busy_ns            BIGINT     ns  union of the activities' intervals
-- sum_dur_ns         BIGINT     ns  sum of the activities' durations
-- n_activities       BIGINT     -   activities
-- n_kernels          BIGINT     -   kernels among them
-- n_comm             BIGINT     -   communication kernels among them
with
    ordered as (
        select
            *,
            max(end_ns) over (
                partition by trace_id, pass_no, loop_no, layer_no
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from placed_activities
        where region = 'layer'
    ),

    measured as (
        select
            trace_id,
            pass_no,
            loop_no,
            layer_no,
            arg_min(event_id, gpu_index) as first_event_id,
            arg_max(event_id, gpu_index) as last_event_id,
            min(start_ns) as start_ns,
            max(end_ns) as end_ns,
            cast(
                sum(
                    greatest(end_ns - greatest(start_ns, coalesce(covered_ns, start_ns)), 0)
                ) as bigint
            ) as busy_ns,
            cast(sum(dur_ns) as bigint) as sum_dur_ns,
            count(*) as n_activities,
            count(*) filter (kind = 'kernel') as n_kernels,
            count(*) filter (category = 'comm') as n_comm
        from ordered
        group by trace_id, pass_no, loop_no, layer_no
    )

select
    m.trace_id,
    m.pass_no,
    m.loop_no,
    m.layer_no,
    k.layer_type,
    k.layer_type_source,
    k.compress_ratio,
    k.roles,
    k.complete,
    k.usual,
    m.first_event_id,
    m.last_event_id,
    m.start_ns,
    m.end_ns,
    m.end_ns - m.start_ns as wall_ns,
    m.busy_ns,
    m.sum_dur_ns,
    m.n_activities,
    m.n_kernels,
    m.n_comm
from measured as m
join layer_kinds as k using (trace_id, pass_no, loop_no, layer_no)
