-- One row a kernel name that may bound layers: norms, residual kernels and whatever a rule matches,
-- where it runs at least twice. Regular gaps speak for it.
-- grain: trace_id, name
-- keep: store
--
-- trace_id         VARCHAR  -  the trace
-- name             VARCHAR  -  name as the profiler wrote it
-- simplified_name  VARCHAR  -  readable name
-- category         VARCHAR  -  what it does
-- n_hits           BIGINT   -  how often it runs in the selection
-- n_streams        BIGINT   -  streams it runs on
-- min_gap          BIGINT   -  fewest activities of its stream from one hit to the next
-- median_gap       DOUBLE   -  median of them
-- max_gap          BIGINT   -  most of them
-- matched          VARCHAR  -  roles and rules of the profile that match it; NULL for none
with
    numbered as (
        select
            trace_id,
            name,
            category,
            device,
            stream,
            row_number() over (
                partition by trace_id, device, stream order by start_ns, gpu_index
            ) as stream_no
        from placed_activities
        where selected
    ),

    gaps as (
        select
            *,
            stream_no - lag(stream_no) over (
                partition by trace_id, device, stream, name order by stream_no
            ) as gap
        from numbered
    ),

    matches as (
        select
            n.name,
            t.trace_id,
            string_agg(
                distinct n.role || ' of ' || r.rule_name,
                ', '
                order by n.role || ' of ' || r.rule_name
            ) as matched
        from name_roles as n
        join boundary_rules as r using (rule_key)
        join trace_rules as t using (rule_key)
        where n.role <> 'lead_in'
        group by n.name, t.trace_id
    )

select
    g.trace_id,
    g.name,
    any_value(c.simplified_name) as simplified_name,
    any_value(g.category) as category,
    count(*) as n_hits,
    count(distinct(g.device, g.stream)) as n_streams,
    min(g.gap) as min_gap,
    median(g.gap) as median_gap,
    max(g.gap) as max_gap,
    any_value(m.matched) as matched
from gaps as g
left join kernel_categories as c on c.trace_id = g.trace_id and c.name = g.name
left join matches as m on m.trace_id = g.trace_id and m.name = g.name
where m.matched is not null or g.category in ('norm', 'residual_mix')
group by g.trace_id, g.name
having count(*) > 1
