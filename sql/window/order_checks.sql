-- One row a pass that is cut, whose end is not proven, or that only words bound, with a whole block
-- that another block shows to be a part of one, or more than one: its order of kernels is none
-- that its slot runs
-- elsewhere, but the begin or the end of another order, or begins or ends with one. Where a whole
-- pass has its count to tell that a boundary is missing or one too many, such a pass has only this.
-- Layers of another type of the config run other kernels, and contradict nothing. The first block
-- may lack what others begin with, or have more; the last may have what others do not end with;
-- but where words bound passes all blocks begin and end alike.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- wrong     VARCHAR  -  the first such block
with
    typed as (
        select b.*, t.layer_type
        from block_traits as b
        join pass_windows as p on p.trace_id = b.trace_id and p.pass_no = b.pass_no
        left join
            trace_layer_types as t
            on t.trace_id = b.trace_id
            and t.layer_no = b.layer_no
            and not p.is_draft
        where b.whole and b.names is not null
    ),

    orders as (
        select trace_id, layer_type, slot, names, count(*) as n_same, max(block_no) > 0 as is_inner
        from typed
        group by trace_id, layer_type, slot, names
    ),

    compared as (
        select
            b.trace_id,
            b.pass_no,
            b.block_no,
            b.layer_no,
            b.slot,
            b.names as these,
            o.names as those,
            len(b.names) < len(o.names)
            or (len(b.names) = len(o.names) and b.slot <> o.slot) as is_part,
            least(len(b.names), len(o.names)) as n,
            b.by_words or b.block_no < b.n_blocks - 1 as may_begin,
            b.by_words or b.block_no > 0 as may_end
        from typed as b
        join
            orders as s
            on s.trace_id = b.trace_id
            and s.slot = b.slot
            and s.names = b.names
            and s.layer_type is not distinct from b.layer_type
        join
            orders as o
            on o.trace_id = b.trace_id
            and o.layer_type is not distinct from b.layer_type
            and (o.slot <> b.slot or o.names <> b.names)
            and (o.is_inner or b.by_words)
        where b.short and (s.n_same = 1 or b.by_words)
    )

select
    trace_id,
    pass_no,
    arg_min(
        'layer '
        || layer_no
        || ': slot '
        || slot
        || if(is_part, ' runs only a part', ' runs more than the whole')
        || ' of the kernels that another block does',
        block_no
    ) as wrong
from compared
where
    -- One kernel may well recur; that a block has no more than one is odd enough.
    (is_part or n > 1)
    and (
        (may_begin and these[1:n] = those[1:n])
        or (may_end and these[len(these) - n + 1:] = those[len(those) - n + 1:])
    )
group by trace_id, pass_no
