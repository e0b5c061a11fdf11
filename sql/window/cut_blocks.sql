-- One row a block that the begin or the end of the trace cuts, with the part of it that is sure:
-- as far as it runs the kernels of a whole block of its slot, in their order. What else stands
-- there may lie beyond a boundary whose anchor is not in the trace.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- block_no    BIGINT   -  0-based block within the whole pass
-- start_line  BIGINT   -  line_no of its first sure activity
-- end_line    BIGINT   -  line_no after its last sure activity
with
    -- Behind the opening kernel, which is another one in layer 0.
    spans as (
        select
            b.trace_id,
            b.pass_no,
            b.block_no,
            b.slot,
            b.role = 'cut' as cut_start,
            b.next_start is null and p.status = 'cut_end' as cut_end,
            b.next_start is not null as is_ended,
            b.start_line,
            coalesce(o.line_no + 1, b.start_line) as first_line,
            coalesce(b.next_start, b.limit_line) as last_line
        from block_spans as b
        join pass_windows as p using (trace_id, pass_no)
        left join main_line as o using (trace_id, event_id)
    ),

    -- Only a trace with a cut block has anything to compare.
    cut_traces as (select distinct trace_id from spans where cut_start or cut_end),

    lists as (
        select s.trace_id, s.pass_no, s.block_no, list(m.name order by m.line_no) as names
        from main_line as m
        asof join spans as s on s.trace_id = m.trace_id and m.line_no >= s.first_line
        where m.line_no < s.last_line and m.trace_id in (from cut_traces)
        group by s.trace_id, s.pass_no, s.block_no
    ),

    named as (
        select s.*, coalesce(l.names, []) as names
        from spans as s
        left join lists as l using (trace_id, pass_no, block_no)
    ),

    whole as (select distinct trace_id, slot, names from named where not cut_start and is_ended),

    compared as (
        select
            c.*,
            if(c.cut_start, list_reverse(c.names), c.names) as these,
            if(c.cut_start, list_reverse(w.names), w.names) as those
        from named as c
        left join whole as w on w.trace_id = c.trace_id and w.slot = c.slot
        where c.cut_start or c.cut_end
    ),

    equal_runs as (
        select
            trace_id,
            pass_no,
            block_no,
            cut_start,
            start_line,
            first_line,
            last_line,
            max(
                coalesce(
                    list_position(
                        list_transform(
                            range(1, len(these) + 1), lambda i:these[i] is distinct from those[i]
                        ),
                        true
                    )
                    - 1,
                    len(these)
                )
            ) as n_equal
        from compared
        group by all
    )

select
    trace_id,
    pass_no,
    block_no,
    if(cut_start, last_line - n_equal, start_line) as start_line,
    if(cut_start, last_line, first_line + n_equal) as end_line
from equal_runs
