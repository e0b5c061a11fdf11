-- One row a pass with activities launched inside layer modules' python frames: whether one module
-- instance ran one layer, and one layer one instance, unless loops run it with others' weights. A
-- last layer launched outside every module, behind layers that are not, is none: the pass has
-- fewer.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- pass_no       BIGINT   -  the pass
-- n_framed      BIGINT   -  activities of its blocks whose launch has a layer frame
-- n_wrong       BIGINT   -  those in another layer than most of the frame's instance
-- frame_source  VARCHAR  -  launch or capture
-- extra_layer   BIGINT   -  last layer, where it was launched outside every layer module
with
    placed as (
        select b.trace_id, b.pass_no, b.layer_no, b.begun, m.event_id, o.source
        from main_line as m
        asof join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
        join activity_origins as o on o.trace_id = m.trace_id and o.event_id = m.event_id
        where m.line_no < b.end_line
    ),

    framed as (
        select
            p.*,
            f.frame_index,
            mode(p.layer_no) over (
                partition by p.trace_id, p.pass_no, f.frame_index
            ) as frames_layer,
            mode(f.frame_index) over (
                partition by p.trace_id, p.pass_no, p.layer_no
            ) as layers_frame
        from placed as p
        join activity_frames as f using (trace_id, event_id)
    ),

    counts as (
        select
            trace_id,
            pass_no,
            count(*) as n_framed,
            count(*) filter (
                layer_no <> frames_layer
                or (
                    frame_index <> layers_frame
                    and trace_id not in (select trace_id from trace_visits)
                )
            ) as n_wrong,
            min(source) as frame_source
        from framed
        group by trace_id, pass_no
    ),

    layered as (
        select
            p.trace_id,
            p.pass_no,
            p.layer_no,
            bool_and(p.begun) as begun,
            count(f.event_id) > 0 as is_framed
        from placed as p
        left join activity_frames as f using (trace_id, event_id)
        group by p.trace_id, p.pass_no, p.layer_no
    ),

    lasts as (
        select
            trace_id,
            pass_no,
            max(layer_no) as last_layer,
            count(*) - count(*) filter (is_framed) = 1
            and not arg_max(is_framed, layer_no)
            and arg_max(begun, layer_no) as is_extra
        from layered
        group by trace_id, pass_no
    )

select
    c.trace_id,
    c.pass_no,
    c.n_framed,
    c.n_wrong,
    c.frame_source,
    if(l.is_extra, l.last_layer, null) as extra_layer
from counts as c
join lasts as l using (trace_id, pass_no)
