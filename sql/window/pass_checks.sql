-- One row a pass that fits a rule, with what other evidence says of the split. Attention must run
-- in every attention slot that is seen whole, and in no other slot: a split that is shifted,
-- doubled or thinned fails here even where the counts fit. Kernels launched inside a layer
-- module's python frame must lie in one layer, and the same one for each frame.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace
-- pass_no        BIGINT   -  the pass
-- n_slots        BIGINT   -  attention slots seen whole
-- n_with         BIGINT   -  those in which an attention kernel runs
-- n_elsewhere    BIGINT   -  other blocks in which one runs
-- first_wrong    VARCHAR  -  the first block that contradicts the split
-- n_framed       BIGINT   -  activities of its blocks whose launch has a layer frame
-- n_frame_wrong  BIGINT   -  those in another layer than the frame's
-- frame_source   VARCHAR  -  launch or capture
-- consistent     BOOLEAN  -  attention fits, and nine in ten framed activities agree
with
    marked as (
        select
            b.trace_id,
            b.pass_no,
            b.block_no,
            b.layer_no,
            b.slot,
            b.begun and b.ended as whole,
            bool_or(
                m.category in ('attention', 'mla', 'linear_attention')
                and not contains(lower(m.name), 'metadata')
            ) as attends
        from blocks as b
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r using (rule_key)
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.end_line
        where list_contains(r.slots, 'attn')
        group by b.trace_id, b.pass_no, b.block_no, b.layer_no, b.slot, b.begun, b.ended
    ),

    wrong as (
        select
            *,
            case
                when slot = 'attn' and whole and not attends
                then 'layer ' || layer_no || ': no attention in slot attn'
                when slot <> 'attn' and attends
                then 'layer ' || layer_no || ': attention in slot ' || slot
            end as reason
        from marked
    ),

    attention as (
        select
            trace_id,
            pass_no,
            count(*) filter (slot = 'attn' and whole) as n_slots,
            count(*) filter (slot = 'attn' and whole and attends) as n_with,
            count(*) filter (slot <> 'attn' and attends) as n_elsewhere,
            arg_min(reason, block_no) filter (reason is not null) as first_wrong,
            bool_or(attends) as known,
            count(reason) as n_wrong
        from wrong
        group by trace_id, pass_no
    ),

    framed as (
        select b.trace_id, b.pass_no, b.layer_no, f.frame_index, f.source
        from blocks as b
        join
            main_line as m
            on m.trace_id = b.trace_id
            and m.line_no >= b.start_line
            and m.line_no < b.end_line
        join activity_frames as f on f.trace_id = m.trace_id and f.event_id = m.event_id
    ),

    -- Frames are numbered by first appearance in the recording, which may begin inside a pass.
    offsets as (
        select trace_id, pass_no, mode(frame_index - layer_no) as shift
        from framed
        group by trace_id, pass_no
    ),

    frames as (
        select
            f.trace_id,
            f.pass_no,
            count(*) as n_framed,
            count(*) filter (
                (f.frame_index - f.layer_no - o.shift) % p.n_layers <> 0
            ) as n_frame_wrong,
            min(f.source) as frame_source
        from framed as f
        join offsets as o using (trace_id, pass_no)
        join pass_windows as p using (trace_id, pass_no)
        group by f.trace_id, f.pass_no
    )

select
    p.trace_id,
    p.pass_no,
    coalesce(a.n_slots, 0) as n_slots,
    coalesce(a.n_with, 0) as n_with,
    coalesce(a.n_elsewhere, 0) as n_elsewhere,
    if(a.known, a.first_wrong, null) as first_wrong,
    coalesce(f.n_framed, 0) as n_framed,
    coalesce(f.n_frame_wrong, 0) as n_frame_wrong,
    f.frame_source,
    not (coalesce(a.known, false) and a.n_wrong > 0)
    and 10 * coalesce(f.n_frame_wrong, 0) <= coalesce(f.n_framed, 0) as consistent
from pass_windows as p
left join attention as a using (trace_id, pass_no)
left join frames as f using (trace_id, pass_no)
where p.status <> 'refused'
