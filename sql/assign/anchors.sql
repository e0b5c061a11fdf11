-- One row a boundary that opens or closes a block of a pass.
-- grain: trace_id, pass_no, block_no
-- keep: store
--
-- trace_id  VARCHAR  -   the trace
-- pass_no   BIGINT   -   the pass
-- block_no  BIGINT   -   0-based block that it opens; the block count where it closes the last
-- event_id  BIGINT   -   the kernel
-- name      VARCHAR  -   its name
-- role      VARCHAR  -   entry (opens block 0), block, or close (final norm or exit)
-- layer_no  BIGINT   -   layer that it opens a block of; NULL for close
-- slot      VARCHAR  -   slot of that block; NULL for close
-- start_ns  BIGINT   ns  start of the kernel
-- rule      VARCHAR  -   the boundary rule
select
    s.trace_id,
    s.pass_no,
    s.block_no,
    s.event_id,
    a.name,
    s.role,
    if(s.role = 'close', null, divide(s.block_no, r.blocks_per_layer)) as layer_no,
    if(s.role = 'close', null, r.slots[s.block_no % r.blocks_per_layer + 1]) as slot,
    a.start_ns,
    r.rule_name as rule
from block_starts as s
join activities as a using (trace_id, event_id)
join pass_windows as p using (trace_id, pass_no)
join boundary_rules as r using (rule_key)
