-- One row a boundary of a pass: where a block begins on the main line, or the last block ends. A
-- rule whose anchors end a block begins the next one behind them.
-- grain: trace_id, pass_no, block_no
-- keep: store
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass; the block count closes the last
-- event_id    BIGINT   -  the anchor; NULL for the block that the begin of the trace cuts
-- role        VARCHAR  -  entry, block, norm, close or cut
-- start_line  BIGINT   -  line_no of the first activity, kernels that lead in included
with
    lead_ins as (
        select o.trace_id, o.pass_no, o.block_no, n.position, b.line_no
        from block_openers as o
        join main_line as m using (trace_id, event_id)
        join name_roles as n on n.rule_key = o.rule_key and n.role = 'lead_in'
        join
            main_line as b
            on b.trace_id = m.trace_id
            and b.device = m.device
            and b.stream = m.stream
            and b.stream_no = m.stream_no - n.position
            and b.name = n.name
    ),

    -- Positions 1, 2, ... without a hole: only those lead in.
    led as (
        select trace_id, pass_no, block_no, min(line_no) as start_line
        from
            (
                select
                    *,
                    row_number() over (
                        partition by trace_id, pass_no, block_no order by position
                    ) as rank
                from lead_ins
            )
        where rank = position
        group by trace_id, pass_no, block_no
    ),

    behind as (
        select o.trace_id, o.pass_no, o.block_no, b.line_no as next_line
        from block_openers as o
        join boundary_rules as r on r.rule_key = o.rule_key and r.anchor_at = 'end'
        join main_line as m using (trace_id, event_id)
        join
            main_line as b
            on b.trace_id = m.trace_id
            and b.device = m.device
            and b.stream = m.stream
            and b.stream_no = m.stream_no + 1
    )

select
    o.trace_id,
    o.pass_no,
    cast(o.block_no as bigint) as block_no,
    o.event_id,
    o.role,
    if(
        r.anchor_at = 'end' and o.role <> 'entry',
        coalesce(b.next_line, o.line_no + 1),
        least(o.line_no, coalesce(l.start_line, o.line_no))
    ) as start_line
from block_openers as o
join boundary_rules as r using (rule_key)
left join led as l using (trace_id, pass_no, block_no)
left join behind as b using (trace_id, pass_no, block_no)
union all
select
    p.trace_id,
    p.pass_no,
    min(o.block_no) - 1 as block_no,
    null as event_id,
    'cut' as role,
    any_value(p.prev_anchor) + 1 as start_line
from pass_windows as p
join block_openers as o using (trace_id, pass_no)
where p.status = 'cut_start'
group by p.trace_id, p.pass_no
having min(o.block_no) > 0
