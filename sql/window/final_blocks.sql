-- One row a last block of a pass whose rule names no kernel that closes it: it ends where an
-- earlier block of its slot, found again at its begin in full, ends.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- end_line  BIGINT   -  line_no after its last activity
with
    tails as (
        select
            b.trace_id,
            b.pass_no,
            any_value(b.slot) as slot,
            any_value(b.start_line) as start_line,
            list(m.name order by m.line_no) as names
        from block_spans as b
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.limit_line
        where b.is_final and b.next_start is null
        group by b.trace_id, b.pass_no
    ),

    patterns as (
        select t.trace_id, t.pass_no, b.block_no, list(m.name order by m.line_no) as names
        from tails as t
        join
            block_spans as b
            on b.trace_id = t.trace_id
            and b.pass_no = t.pass_no
            and b.slot = t.slot
            and b.next_start is not null
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.next_start
        group by t.trace_id, t.pass_no, b.block_no
    )

select t.trace_id, t.pass_no, max(t.start_line + len(p.names)) as end_line
from tails as t
join patterns as p using (trace_id, pass_no)
where t.names[1:len(p.names)] = p.names
group by t.trace_id, t.pass_no
