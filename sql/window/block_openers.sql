-- One row a kernel that bounds a block of a pass: it opens the block, or it is its last one.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- rule_key  INTEGER  -  the boundary rule
-- block_no  BIGINT   -  0-based block within the whole pass; the block count closes the last
-- event_id  BIGINT   -  the kernel
-- role      VARCHAR  -  entry, block, norm (between two loops) or close
-- line_no   BIGINT   -  its position on the main line
with
    -- Entry kernels that open blocks follow the anchor before those blocks, or the begin of the
    -- pass: where the same kernel occurs elsewhere, the last marker before the anchors.
    gates as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            cast(0 as bigint) as n_hits_before,
            if(r.entry_ambiguous, p.begin_line, p.prev_anchor) as from_line,
            p.first_hit as to_line
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        where p.opened and p.status <> 'refused'
        union all
        select h.trace_id, h.pass_no, h.rule_key, h.hit_no + 1, h.line_no, h.next_hit
        from pass_hits as h
        join pass_windows as p using (trace_id, pass_no)
        semi join
            pass_templates as t
            on t.trace_id = p.trace_id
            and t.rule_key = p.rule_key
            and t.n_layers = p.n_layers
            and t.depth = p.depth
            and t.resets = p.resets
            and t.n_hits_before = h.hit_no + 1
            and t.entry_no = 1
    ),

    entries as (
        select
            g.*,
            h.event_id,
            h.line_no,
            row_number() over (
                partition by g.trace_id, g.pass_no, g.n_hits_before order by h.line_no
            ) as entry_no
        from
            (
                select h.trace_id, h.rule_key, h.event_id, m.line_no
                from anchor_hits as h
                join main_line as m using (trace_id, event_id)
                where h.role = 'entry'
            ) as h
        asof join
            gates as g
            on g.trace_id = h.trace_id
            and g.rule_key = h.rule_key
            and h.line_no >= g.from_line
        where h.line_no < g.to_line
    ),

    entered as (
        select
            e.trace_id,
            e.pass_no,
            e.rule_key,
            t.block_no,
            e.event_id,
            if(t.layer_no is null, 'norm', 'entry') as role,
            e.line_no
        from entries as e
        join pass_windows as p using (trace_id, pass_no)
        join
            pass_templates as t
            on t.trace_id = e.trace_id
            and t.rule_key = e.rule_key
            and t.n_layers = p.n_layers
            and t.depth = p.depth
            and t.resets = p.resets
            and t.n_hits_before = e.n_hits_before
            and t.entry_no = e.entry_no
    ),

    exits as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            arg_min(h.event_id, m.line_no) as event_id,
            min(m.line_no) as line_no,
            any_value(p.n_blocks) as block_no
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        join
            anchor_hits as h
            on h.trace_id = p.trace_id
            and h.rule_key = p.rule_key
            and h.role = 'exit'
        join
            main_line as m
            on m.trace_id = h.trace_id
            and m.event_id = h.event_id
            and m.line_no > p.last_hit
            and m.line_no < p.next_anchor
        where p.status in ('complete', 'cut_start') and r.last_is = 'block'
        group by p.trace_id, p.pass_no, p.rule_key
    )

select trace_id, pass_no, rule_key, block_no, event_id, role, line_no
from pass_hits
union all
from entered
union all
select trace_id, pass_no, rule_key, block_no, event_id, 'close', line_no
from exits
