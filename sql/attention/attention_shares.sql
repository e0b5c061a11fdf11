-- One row a part of a trace: how much of its time attention takes. Attention is the union of the
-- intervals of all activities of its calls: kernels, and what belongs to them.
-- grain: trace_id, scope, position
-- keep: store
--
-- trace_id      VARCHAR  -    the trace
-- scope         VARCHAR  -    trace, pass phase, layer type or pass
-- of            VARCHAR  -    which one
-- scope_order   BIGINT   -    0 for the trace, then as above
-- position      INTEGER  -    0-based within the scope: passes by time, others by attention
-- n_calls       BIGINT   -    calls of attention
-- n_parts       BIGINT   -    passes, or visits of layers, that the row is about
-- attention_ms  DOUBLE   ms   time in attention
-- busy_ms       DOUBLE   ms   time in which the device works
-- wall_ms       DOUBLE   ms   from first start to last end, summed over parts
-- busy_pct      DOUBLE   pct  attention of the busy time
-- wall_pct      DOUBLE   pct  attention of the wall time
with
    placed as (
        select
            c.trace_id,
            c.call_no,
            l.pass_no,
            l.loop_no,
            if(l.region = 'layer', l.layer_no, null) as layer_no,
            c.start_ns,
            c.end_ns,
            max(c.end_ns) over (
                partition by c.trace_id, a.pid, a.device
                order by c.start_ns, a.gpu_index
                rows between unbounded preceding and 1 preceding
            ) as covered_ns
        from attention_activities as c
        join activities as a using (trace_id, event_id)
        left join activity_layers as l using (trace_id, event_id)
    ),

    sums as (
        select
            trace_id,
            pass_no,
            loop_no,
            layer_no,
            grouping(pass_no, layer_no) as level,
            count(distinct call_no) as n_calls,
            sum(greatest(end_ns - greatest(start_ns, covered_ns), 0)) as own_ns
        from placed
        group by
            grouping sets ((trace_id), (trace_id, pass_no), (trace_id, pass_no, loop_no, layer_no))
    ),

    parts as (
        select t.*, 'trace' as scope, 'all' as part, 0 as ordinal, s.n_calls, s.own_ns
        from trace_spans as t
        left join (from sums where level = 3) as s using (trace_id)
        union all by name
        select
            p.trace_id,
            p.busy_ns,
            p.wall_ns,
            v.scope,
            if(
                v.scope = 'pass', concat_ws(' ', p.pass_no, p.phase), coalesce(p.phase, 'unknown')
            ) as part,
            if(v.scope = 'pass', p.pass_no, 0) as ordinal,
            s.n_calls,
            s.own_ns
        from passes as p
        cross join (values ('pass'), ('pass phase')) as v(scope)
        left join (from sums where level = 1) as s using (trace_id, pass_no)
        where p.busy_ns > 0
        union all by name
        select
            l.trace_id,
            l.busy_ns,
            l.wall_ns,
            'layer type' as scope,
            coalesce(l.layer_type, 'unknown') as part,
            0 as ordinal,
            s.n_calls,
            s.own_ns
        from layers as l
        left join (from sums where level = 0) as s using (trace_id, pass_no, loop_no, layer_no)
    )
select
    trace_id,
    scope,
    part as of,
    cast(
        list_position(['trace', 'pass phase', 'layer type', 'pass'], scope) - 1 as bigint
    ) as scope_order,
    cast(
        row_number() over (
            partition by trace_id, scope order by ordinal, sum(own_ns) desc nulls last, part
        )
        - 1 as integer
    ) as position,
    cast(coalesce(sum(n_calls), 0) as bigint) as n_calls,
    count(*) as n_parts,
    coalesce(sum(own_ns), 0) / 1e6 as attention_ms,
    sum(busy_ns) / 1e6 as busy_ms,
    sum(wall_ns) / 1e6 as wall_ms,
    100 * attention_ms / nullif(busy_ms, 0) as busy_pct,
    100 * attention_ms / nullif(wall_ms, 0) as wall_pct
from parts
group by trace_id, scope, part, ordinal
