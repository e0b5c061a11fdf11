-- One row a layer count that a trace may have, with where it comes from: told (config or option),
-- else what a stretch of anchors gives by a rule's formula, if its begin is in the trace and its
-- end is proven: by what follows it, or by as many layer modules in the trace's frames. Beside a
-- told count a draft model's: from the config, or from several stretches of far fewer layers. A
-- rule by words needs attention behind each anchor that opens a layer.
-- grain: trace_id, n_layers
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- n_layers  BIGINT   -  the layer count
-- source    VARCHAR  -  option, config, frames or anchors; draft for a draft model's
with
    told as (
        select trace_id, num_layers as n_layers, num_layers_source as source
        from trace_settings
        where num_layers is not null
    ),

    drafts as (
        select trace_id, draft_layers as n_layers
        from trace_settings
        where draft_layers is not null and draft_layers is distinct from num_layers
    ),

    framed as (
        select trace_id, count(distinct frame_index) as n_frames
        from activity_frames
        group by trace_id
    ),

    counted as (
        select
            c.trace_id,
            c.method,
            c.range_no,
            divide(c.n_hits - r.hits_extra, r.hits_per_layer) as n_layers,
            x.trace_id is not null as closed,
            r.confidence = 'words' as by_words,
            f.n_frames
        from range_counts as c
        left join range_entries as e using (trace_id, method, range_no, rule_key)
        left join range_ends as x using (trace_id, method, range_no, rule_key)
        left join framed as f using (trace_id)
        join boundary_rules as r using (rule_key)
        join pass_ranges as p using (trace_id, method, range_no)
        where
            c.opened
            and not c.inner_mark
            and c.n_hits > r.hits_extra
            and (c.n_hits - r.hits_extra) % r.hits_per_layer = 0
            and coalesce(
                list_contains(e.n_due, e.n_entries)
                or (
                    c.n_hits = r.hits_per_layer + r.hits_extra
                    and list_contains(e.n_due, e.n_entries - 1)
                ),
                true
            )
            and r.role is null
            and (
                r.confidence <> 'words'
                or (
                    p.last_attends = (r.last_is = 'block')
                    and p.n_attending = c.n_hits - if(r.last_is = 'block', 0, 1)
                )
            )
    )

select trace_id, n_layers, min(source) as source
from told
group by trace_id, n_layers
union all
select trace_id, n_layers, if(bool_or(n_layers = n_frames), 'frames', 'anchors') as source
from counted
where (closed or n_layers = n_frames) and trace_id not in (select trace_id from told)
group by trace_id, n_layers
union all
select trace_id, n_layers, 'draft' as source
from
    (
        from drafts
        union
        select c.trace_id, c.n_layers
        from counted as c
        join
            told as t
            on t.trace_id = c.trace_id
            and if(c.by_words, c.n_layers < t.n_layers, 2 * c.n_layers <= t.n_layers)
        where c.closed
        group by c.trace_id, c.n_layers, c.method
        having count(distinct c.range_no) > 1 or bool_or(c.by_words)
    )
