-- One row a loop of a pass: a run of the layers that its model visits more than once, with what
-- runs between them and the next loop. Layers before and behind the loops are not in it.
-- grain: trace_id, pass_no, stack_no, loop_no
--
-- trace_id      VARCHAR  -    the trace
-- pass_no       BIGINT   -    0-based pass
-- stack_no      BIGINT   -    0-based stack of layers that loop together
-- loop_no       BIGINT   -    0-based visit of these layers
-- kind          VARCHAR  -    kind of the pass
-- phase         VARCHAR  -    its phase; NULL when unknown
-- n_layers      BIGINT   -    layers visited
-- complete      BOOLEAN  -    all layers of the stack are in it, whole, and so is the pass
-- start_ns      BIGINT   ns   first start
-- end_ns        BIGINT   ns   last end
-- wall_ns       BIGINT   ns   last end minus first start
-- busy_ns       BIGINT   ns   union of the activities' intervals
-- sum_dur_ns    BIGINT   ns   sum of the activities' durations
-- between_ns    BIGINT   ns   the part of it outside layers: norm, gate or adapter of the loop
-- n_activities  BIGINT   -    activities
-- share_pct     DOUBLE   pct  share of the pass's wall
with
    stacks as (
        select trace_id, kind, stack_no, count(*) as n_layers
        from core_layers
        group by trace_id, kind, stack_no
    ),

    placed as (
        select
            a.*,
            p.kind as pass_kind,
            last_value(a.layer_no ignore nulls) over in_pass as prev_layer,
            first_value(a.layer_no ignore nulls) over (
                partition by a.trace_id, a.pass_no
                order by a.gpu_index
                rows between current row and unbounded following
            ) as next_layer
        from placed_activities as a
        join passes as p using (trace_id, pass_no)
        where (a.trace_id, p.kind) in (select (trace_id, kind) from core_layers)
        window
            in_pass as (
                partition by a.trace_id, a.pass_no order by a.gpu_index rows unbounded preceding
            )
    ),

    -- A norm or gate is of the loop that it ends, an adapter of the one that it begins; behind or
    -- before layers that do not loop they are of none.
    looped as (
        select p.*, c.stack_no
        from placed as p
        join
            core_layers as c
            on c.trace_id = p.trace_id
            and c.kind = p.pass_kind
            and c.layer_no
            = coalesce(p.layer_no, if(p.region = 'prologue', p.next_layer, p.prev_layer))
        where p.loop_no is not null
    ),

    covered as (
        select
            *,
            max(end_ns) over (
                partition by trace_id, pass_no, stack_no, loop_no
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from looped
    ),

    measured as (
        select
            trace_id,
            pass_no,
            stack_no,
            loop_no,
            any_value(pass_kind) as kind,
            count(distinct layer_no) as n_layers,
            min(start_ns) as start_ns,
            max(end_ns) as end_ns,
            cast(
                sum(
                    greatest(end_ns - greatest(start_ns, coalesce(covered_ns, start_ns)), 0)
                ) as bigint
            ) as busy_ns,
            cast(sum(dur_ns) as bigint) as sum_dur_ns,
            cast(coalesce(sum(dur_ns) filter (layer_no is null), 0) as bigint) as between_ns,
            count(*) as n_activities
        from covered
        group by trace_id, pass_no, stack_no, loop_no
    )

select
    m.trace_id,
    m.pass_no,
    m.stack_no,
    m.loop_no,
    m.kind,
    p.phase,
    m.n_layers,
    m.n_layers = s.n_layers and p.status = 'complete' as complete,
    m.start_ns,
    m.end_ns,
    m.end_ns - m.start_ns as wall_ns,
    m.busy_ns,
    m.sum_dur_ns,
    m.between_ns,
    m.n_activities,
    100.0 * (m.end_ns - m.start_ns) / nullif(p.wall_ns, 0) as share_pct
from measured as m
join passes as p using (trace_id, pass_no)
join stacks as s on s.trace_id = m.trace_id and s.kind = m.kind and s.stack_no = m.stack_no
