-- One row a boundary rule of the profile whose anchor occurs in the trace: how often, and what came
-- of it.
-- grain: trace_id, rule
-- keep: store
--
-- trace_id    VARCHAR  -  the trace
-- rule        VARCHAR  -  the rule
-- priority    INTEGER  -  order in which rules are preferred
-- confidence  VARCHAR  -  golden, trace, source, words or option
-- hits        VARCHAR  -  anchors of one pass as a formula in the layer count N
-- n_anchors   BIGINT   -  anchors found
-- n_entries   BIGINT   -  kernels found that can open layer 0
-- n_streams   BIGINT   -  streams that carry the anchors
-- n_fitting   BIGINT   -  passes, complete or cut, that the rule fits
-- n_refused   BIGINT   -  stretches of its anchors that were refused
with
    found as (
        select
            h.trace_id,
            h.rule_key,
            count(*) filter (h.role = 'anchor') as n_anchors,
            count(*) filter (h.role = 'entry') as n_entries,
            count(distinct(a.device, a.stream)) filter (h.role = 'anchor') as n_streams
        from anchor_hits as h
        join activities as a using (trace_id, event_id)
        group by h.trace_id, h.rule_key
    ),

    used as (
        select
            p.trace_id,
            p.rule_key,
            count(*) filter (x.pass_no is null) as n_fitting,
            count(x.pass_no) as n_refused
        from pass_windows as p
        left join refused_windows as x using (trace_id, pass_no)
        group by p.trace_id, p.rule_key
    )

select
    f.trace_id,
    r.rule_name as rule,
    t.priority,
    r.confidence,
    r.hits,
    f.n_anchors,
    f.n_entries,
    f.n_streams,
    coalesce(u.n_fitting, 0) as n_fitting,
    coalesce(u.n_refused, 0) as n_refused
from found as f
join trace_rules as t using (trace_id, rule_key)
join boundary_rules as r using (rule_key)
left join used as u using (trace_id, rule_key)
where f.n_anchors > 0
