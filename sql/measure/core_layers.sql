-- One row a layer that passes of a kind visit more than once. Layers visited equally often are one
-- stack: most looped models have one, models with cycles inside cycles have several.
-- grain: trace_id, kind, layer_no
--
-- trace_id  VARCHAR  -  the trace
-- kind      VARCHAR  -  kind of pass: target, draft or mtp
-- layer_no  BIGINT   -  0-based layer
-- n_visits  BIGINT   -  visits in the deepest complete pass
-- stack_no  BIGINT   -  0-based stack, in order of layers
with
    visited as (
        select l.trace_id, p.kind, l.layer_no, max(l.loop_no) + 1 as n_visits
        from layers as l
        join passes as p using (trace_id, pass_no)
        where p.status = 'complete'
        group by l.trace_id, p.kind, l.layer_no
        having n_visits > 1
    ),

    firsts as (
        select *, min(layer_no) over (partition by trace_id, kind, n_visits) as first_layer
        from visited
    )

select
    trace_id,
    kind,
    layer_no,
    n_visits,
    dense_rank() over (partition by trace_id, kind order by first_layer) - 1 as stack_no
from firsts
