-- One row a pass that fits a rule, with what other evidence says of the split. Attention must run
-- in every attention slot that is seen whole, in no other slot, and not before layer 0: a split
-- that is shifted, doubled or thinned fails here even where the counts fit. Behind the last layer
-- nothing runs that only layers do, and no block of a cut pass is a part of another, or more. What
-- a layer module's python frame launched must lie in one layer.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- n_slots        BIGINT   -  attention slots seen whole
-- n_with         BIGINT   -  those in which an attention kernel runs
-- n_framed       BIGINT   -  activities of its blocks whose launch has a layer frame
-- n_frame_wrong  BIGINT   -  those in another layer than the frame's
-- frame_source   VARCHAR  -  launch or capture
-- wrong          VARCHAR  -  what contradicts the split; NULL when nothing does
-- consistent     BOOLEAN  -  nothing does; of framed activities one in ten may
with
    -- Attention between the begin of the pass and layer 0: a first boundary was not seen. What the
    -- layers of the pass before hold is theirs.
    begins as (
        select
            p.trace_id,
            p.pass_no,
            any_value(p.opened) as opened,
            min(b.start_line) as start_line,
            greatest(
                any_value(p.begin_line),
                lag(max(b.end_line)) over (partition by p.trace_id order by min(b.start_line))
            ) as begin_line,
            any_value(r.confidence) = 'words' and not arg_max(b.ended, b.block_no) as is_open
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        join blocks as b using (trace_id, pass_no)
        group by p.trace_id, p.pass_no
    ),

    early as (
        select distinct b.trace_id, b.pass_no
        from main_line as m
        asof join begins as b on b.trace_id = m.trace_id and m.line_no >= b.begin_line
        where m.line_no < b.start_line and m.attends and b.opened
    ),

    opened as (
        select o.trace_id, o.pass_no, count(distinct o.block_no) as n_opened
        from block_openers as o
        join pass_windows as p using (trace_id, pass_no)
        where o.block_no < p.n_blocks
        group by o.trace_id, o.pass_no
    ),

    judged as (
        select
            p.trace_id,
            p.pass_no,
            coalesce(a.n_slots, 0) as n_slots,
            coalesce(a.n_with, 0) as n_with,
            coalesce(f.n_framed, 0) as n_framed,
            coalesce(f.n_wrong, 0) as n_frame_wrong,
            f.frame_source,
            case
                when p.status = 'complete' and b.n_opened < p.n_blocks
                then
                    'no kernel opens '
                    || (p.n_blocks - b.n_opened)
                    || ' of '
                    || p.n_blocks
                    || ' blocks'
                when a.first_wrong is not null
                then
                    a.first_wrong
                    || ' ('
                    || a.n_with
                    || ' of '
                    || a.n_slots
                    || ' attention slots hold it)'
                when t.wrong is not null
                then t.wrong
                when o.wrong is not null
                then o.wrong
                when s.is_open
                then 'nothing shows where its last layer ends'
                when e.pass_no is not null
                then 'attention runs before layer 0'
                when f.extra_layer is not null
                then
                    'layer '
                    || f.extra_layer
                    || ' was launched outside every layer module; the frames show '
                    || f.extra_layer
                    || ' layers'
                when 10 * f.n_wrong > f.n_framed
                then
                    f.n_wrong
                    || ' of '
                    || f.n_framed
                    || ' kernels lie in another layer than the python frame that launched them'
            end as wrong
        from pass_windows as p
        left join opened as b using (trace_id, pass_no)
        left join slot_checks as a using (trace_id, pass_no)
        left join tail_checks as t using (trace_id, pass_no)
        left join order_checks as o using (trace_id, pass_no)
        left join early as e using (trace_id, pass_no)
        left join begins as s using (trace_id, pass_no)
        left join frame_checks as f using (trace_id, pass_no)
        where p.status <> 'refused'
    )

select *, wrong is null as consistent
from judged
