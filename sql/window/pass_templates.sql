-- One row a block of a whole pass as a boundary rule would see it: what opens it, and which part of
-- which layer it is. A final norm between two loops opens a block of no layer.
-- grain: trace_id, rule_key, n_layers, depth, resets, block_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- rule_key       INTEGER  -  the rule
-- n_layers       BIGINT   -  layer count
-- depth          BIGINT   -  runs of the core of a looped model
-- resets         BOOLEAN  -  each run begins with an entry kernel
-- block_no       BIGINT   -  0-based block; behind the last the final norm, where the rule has it
-- hit_no         BIGINT   -  0-based anchor that opens it; NULL where an entry kernel does
-- entry_no       BIGINT   -  which entry kernel behind the last anchor; NULL as hit_no is not
-- n_hits         BIGINT   -  anchors in it: its own, and those that a layer of a role has inside
-- n_hits_before  BIGINT   -  anchors of the pass before it
-- opens_run      BOOLEAN  -  a run of a looped core begins with it
-- layer_no       BIGINT   -  0-based layer of the config; NULL for a final norm
-- loop_no        BIGINT   -  0-based visit of that layer; for a final norm the loop that it ends
-- slot           VARCHAR  -  which part of the layer; NULL for a final norm
with
    rules as (
        select distinct c.trace_id, r.*
        from range_counts as c
        join boundary_rules as r using (rule_key)
    ),

    -- Slot number blocks_per_layer stands for the norm behind the layer.
    slotted as (
        select r.*, d.n_layers, d.depth, d.resets, unnest(range(r.blocks_per_layer + 1)) as slot_no
        from rules as r
        join depths as d on d.trace_id = r.trace_id and (r.first_block > 0 or not d.resets)
    ),

    blocks_of as (
        select
            v.*,
            s.rule_key,
            s.resets,
            s.slot_no,
            s.slots[s.slot_no + 1] as slot,
            s.slot_no = s.blocks_per_layer as is_norm,
            case
                when s.first_block = 0
                then false
                when s.slot_no = s.blocks_per_layer
                then s.resets and not v.is_last
                when s.slot_no > 0
                then false
                when s.resets
                then v.opens_run
                when s.last_is = 'epilogue'
                then v.norm_before
                else v.visit_no = 0
            end as is_entry,
            coalesce(s.inner_hits[s.slot_no + 1], 0) + if(
                s.slot_no = s.inner_slot_no
                and list_contains(t.roles, s.role)
                and v.n_layers = p.num_layers,
                s.hits_per_role,
                0
            ) as n_inner
        from slotted as s
        join visits as v using (trace_id, n_layers, depth)
        join trace_settings as p using (trace_id)
        left join trace_layer_types as t using (trace_id, layer_no)
        where s.slot_no < s.blocks_per_layer or (s.last_is = 'epilogue' and v.norm_behind)
    ),

    counted as (
        select
            *,
            if(is_entry, 0, 1) + n_inner as n_hits,
            cast(
                coalesce(
                    sum(if(is_entry, 0, 1) + n_inner) over (
                        partition by trace_id, rule_key, n_layers, depth, resets
                        order by visit_no, slot_no
                        rows between unbounded preceding and 1 preceding
                    ),
                    0
                ) as bigint
            ) as n_hits_before
        from blocks_of
    )

select
    trace_id,
    rule_key,
    n_layers,
    depth,
    resets,
    row_number() over in_pass - 1 as block_no,
    if(is_entry, null, n_hits_before) as hit_no,
    if(
        is_entry,
        row_number() over (
            partition by trace_id, rule_key, n_layers, depth, resets, n_hits_before, is_entry
            order by visit_no, slot_no
        ),
        null
    ) as entry_no,
    cast(n_hits as bigint) as n_hits,
    n_hits_before,
    opens_run and slot_no = 0 and visit_no > 0 as opens_run,
    if(is_norm, null, layer_no) as layer_no,
    loop_no,
    slot
from counted
window
    in_pass as (partition by trace_id, rule_key, n_layers, depth, resets order by visit_no, slot_no)
