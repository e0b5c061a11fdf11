-- One row a pass behind whose last layer a kernel runs that only layers do: the anchor that would
-- close it is another one. Up to the next anchor or marker, and no further than its own step or
-- graph launch, where that tells passes apart. What also a head may run must run in layers, too.
-- Where words bound passes, attention before the next anchor or marker is enough, and no GEMM of a
-- layer may run there either.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- pass_no   BIGINT   -  the pass
-- wrong     VARCHAR  -  the first such kernel's category
with
    closes as (
        select
            o.trace_id,
            o.pass_no,
            o.line_no,
            m.graph,
            m.step,
            p.method,
            p.next_anchor,
            r.confidence = 'words' as by_words
        from block_openers as o
        join main_line as m using (trace_id, event_id)
        join pass_windows as p on p.trace_id = o.trace_id and p.pass_no = o.pass_no
        join boundary_rules as r on r.rule_key = p.rule_key
        where o.role = 'close'
    ),

    behind as (
        select
            c.trace_id,
            c.pass_no,
            m.line_no,
            m.name,
            m.category,
            m.is_marker,
            m.attends and c.by_words as is_attention,
            case
                c.method
                when 'markers'
                then coalesce(m.step = c.step, c.step is null)
                when 'graphs'
                then m.graph = c.graph
                else m.step = c.step
            end as is_own
        from main_line as m
        asof join closes as c on c.trace_id = m.trace_id and m.line_no > c.line_no
        where
            m.line_no < c.next_anchor
            and (
                m.is_marker
                or m.attends
                or m.category in ('moe', 'activation')
                or (c.by_words and starts_with(m.category, 'gemm'))
            )
    ),

    -- Names that run in blocks.
    inner_names as (
        select distinct m.trace_id, m.name
        from main_line as m
        asof join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
        where
            m.line_no < b.end_line and (m.trace_id, m.name) in (select (trace_id, name) from behind)
    )

select
    b.trace_id,
    b.pass_no,
    arg_min(b.category, b.line_no) filter (not b.is_marker)
    || ' runs behind the last layer' as wrong
from behind as b
left join inner_names as i using (trace_id, name)
where b.is_marker or b.is_attention or (b.is_own and i.name is not null)
group by b.trace_id, b.pass_no
having arg_min(not b.is_marker, b.line_no)
