-- One row a visit of a layer: the order of its main-line kernels, as a number that equal orders
-- share. Kernels that open a block count as equal: layer 0's first norm has another name.
-- grain: trace_id, pass_no, loop_no, layer_no
-- keep: yes
--
-- trace_id   VARCHAR  -  the trace
-- pass_no    BIGINT   -  the pass
-- loop_no    BIGINT   -  visit of the layers
-- layer_no   BIGINT   -  the layer
-- complete   BOOLEAN  -  all of its blocks are in the trace
-- sequence   UBIGINT  -  hash of the ordered kernel names
-- has_moe    BOOLEAN  -  runs expert or routing kernels
-- attention  VARCHAR  -  attention, mla or linear_attention by its kernels; NULL without any
select
    b.trace_id,
    b.pass_no,
    b.loop_no,
    b.layer_no,
    bool_and(b.begun and b.ended)
    and count(distinct b.block_no) = any_value(r.blocks_per_layer) as complete,
    hash(list(if(m.event_id = b.event_id, 'anchor', m.name) order by m.line_no)) as sequence,
    bool_or(m.category in ('moe', 'moe_routing')) as has_moe,
    max(m.category) filter (m.attends) as attention
from main_line as m
asof join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
join pass_windows as p on p.trace_id = b.trace_id and p.pass_no = b.pass_no
join boundary_rules as r on r.rule_key = p.rule_key
where m.line_no < b.end_line and b.layer_no is not null
group by b.trace_id, b.pass_no, b.loop_no, b.layer_no
