-- One row a boundary that opens or closes a block of a pass.
-- grain: trace_id, pass_no, block_no
-- keep: store
--
-- trace_id  VARCHAR  -   the trace
-- pass_no   BIGINT   -   the pass
-- block_no  BIGINT   -   0-based block that it opens; the block count where it closes the last
-- event_id  BIGINT   -   the kernel
-- name      VARCHAR  -   its name
-- role      VARCHAR  -   entry, block, norm (behind a loop) or close (final norm, exit)
-- loop_no   BIGINT   -   visit of that layer, or loop that a final norm ends
-- layer_no  BIGINT   -   layer that it opens a block of; NULL for close and norm
-- slot      VARCHAR  -   slot of that block; NULL for close and norm
-- start_ns  BIGINT   ns  start of the kernel
-- rule      VARCHAR  -   the boundary rule
select
    s.trace_id,
    s.pass_no,
    s.block_no,
    s.event_id,
    a.name,
    s.role,
    t.loop_no,
    t.layer_no,
    t.slot,
    a.start_ns,
    r.rule_name as rule
from block_starts as s
join activities as a using (trace_id, event_id)
join pass_windows as p using (trace_id, pass_no)
join boundary_rules as r using (rule_key)
left join pass_templates as t using (trace_id, rule_key, n_layers, depth, resets, block_no)
