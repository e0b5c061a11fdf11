-- One row a boundary rule under a layer count and a depth: what a whole pass has by it.
-- grain: trace_id, rule_key, n_layers, depth, resets
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- rule_key  INTEGER  -  the rule
-- n_layers  BIGINT   -  layer count
-- depth     BIGINT   -  runs of the core of a looped model
-- resets    BOOLEAN  -  each run begins with an entry kernel
-- n_hits    BIGINT   -  anchors of a whole pass
-- n_blocks  BIGINT   -  its blocks, final norm not counted
select
    trace_id,
    rule_key,
    n_layers,
    depth,
    resets,
    cast(sum(n_hits) as bigint) as n_hits,
    max(block_no) filter (layer_no is not null) + 1 as n_blocks
from pass_templates
group by trace_id, rule_key, n_layers, depth, resets
