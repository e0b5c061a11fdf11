-- One row an attention call with what keeps its work from being known, and what would tell it.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- call_no   BIGINT   -  the call
-- problem   VARCHAR  -  why a number is missing, or what else is not known; NULL for none
select
    c.trace_id,
    c.call_no,
    case
        when s.flops is not null and s.bytes is not null
        then c.problem
        when s.call_no is null
        then 'impossible shape: a size is below 0'
        when c.implementation = 'cache' and c.q_dtype is not null
        then coalesce(c.problem, 'no shapes recorded: profile with record_shapes=True')
        when c.direction = 'bwd' and c.implementation = 'linear'
        then 'no formula for the backward of linear attention'
        when m.mask = 'block_sparse' and c.d_qk is not null
        then 'block-sparse mask: which blocks are kept is not recorded'
        when s.flops is not null and c.h_kv is null
        then coalesce(c.problem, 'number of key heads not recorded: give --config config.json')
        when s.flops is not null
        then coalesce(c.problem, 'types not recorded: profile with record_shapes=True')
        when (c.h_q is null and c.implementation <> 'linear') or c.d_qk is null
        then coalesce(c.problem, 'no shapes recorded: profile with record_shapes=True')
        when m.by_load and not coalesce(c.packed, false) and c.problem is not null
        then c.problem
        when m.by_load and l.load_source is null
        then
            'lengths of the requests not recorded: profile with detailed step annotations, which'
            || ' tell sums of query and key tokens'
        when m.by_load
        then coalesce(l.note, 'lengths of the requests not recorded')
        else coalesce(c.problem, 'shape not whole: a size is missing or not a number')
    end as problem
from attention_calls as c
left join call_masks as m using (trace_id, call_no)
left join attention_loads as l using (trace_id, call_no)
left join call_sums as s using (trace_id, call_no)
