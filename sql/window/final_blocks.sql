-- One row a last block of a pass whose rule names no kernel that closes it, or only by its words,
-- or
-- of a run of layers behind which a loop begins with kernels of its own: it ends where an earlier
-- block of its slot, found again at its begin in full, ends.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- block_no  BIGINT   -  the block
-- end_line  BIGINT   -  line_no after its last activity
with
    tails as (
        select
            b.trace_id,
            b.pass_no,
            b.block_no,
            any_value(b.slot) as slot,
            any_value(r.confidence = 'words' and r.last_is = 'block') as by_words,
            any_value(b.start_line) as start_line,
            list(m.name order by m.line_no) as names,
            list(m.attends order by m.line_no) as attending
        from block_spans as b
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r on r.rule_key = p.rule_key
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < coalesce(b.next_start, b.limit_line)
        where
            (
                b.is_final
                and (b.next_start is null or (r.confidence = 'words' and r.last_is = 'block'))
            )
            or (b.before_run and b.next_start is not null)
        group by b.trace_id, b.pass_no, b.block_no
    ),

    patterns as (
        select t.trace_id, t.pass_no, t.slot, b.block_no, list(m.name order by m.line_no) as names
        from (select distinct trace_id, pass_no, slot, by_words from tails) as t
        join
            block_spans as b
            on b.trace_id = t.trace_id
            and b.pass_no = t.pass_no
            and b.slot = t.slot
            and b.next_start is not null
            and not b.before_run
            and not (b.is_final and t.by_words)
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.next_start
        group by t.trace_id, t.pass_no, t.slot, b.block_no
    )

select t.trace_id, t.pass_no, t.block_no, max(t.start_line + len(p.names)) as end_line
from tails as t
join
    (select distinct trace_id, pass_no, slot, names from patterns) as p using (
        trace_id, pass_no, slot
    )
where
    t.names[1:len(p.names)] = p.names
    -- Behind the layers words tell a head from another layer.
    and not (t.by_words and list_contains(t.attending[len(p.names) + 1:], true))
group by t.trace_id, t.pass_no, t.block_no
