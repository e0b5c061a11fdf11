-- One row a pass: its phase and how that is known. A step annotation that launched it comes first,
-- then the file's name, then kernels that only prefill or only decode runs.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- pass_no       BIGINT   -  the pass
-- phase         VARCHAR  -  prefill, decode, mixed, ...; NULL when unknown
-- phase_source  VARCHAR  -  annotation, file name or kernels
-- step_name     VARCHAR  -  name of the step annotation
with
    stepped as (
        select e.trace_id, e.pass_no, mode(m.step) as step
        from main_line as m
        asof join pass_edges as e on e.trace_id = m.trace_id and m.line_no >= e.layers_line
        where m.line_no < e.epilogue_line and m.step is not null
        group by e.trace_id, e.pass_no
    ),

    attended as (
        select
            trace_id,
            pass_no,
            bool_or(
                regexp_matches(lower(name), 'prefill|extend|context|flash_fwd_kernel')
            ) as prefills,
            bool_or(
                regexp_matches(lower(name), 'decode|paged_attention|splitkv|unified_attention_3d')
            ) as decodes
        from placed_activities
        where region = 'layer' and category in ('attention', 'mla')
        group by trace_id, pass_no
    )

select
    p.trace_id,
    p.pass_no,
    case
        when t.phase is not null
        then t.phase
        when regexp_matches(f.name, '(?i)[-_.]decode\b')
        then 'decode'
        when regexp_matches(f.name, '(?i)[-_.](extend|prefill)\b')
        then 'prefill'
        when a.prefills and not a.decodes
        then 'prefill'
        when a.decodes and not a.prefills
        then 'decode'
    end as phase,
    case
        when t.phase is not null
        then 'annotation'
        when regexp_matches(f.name, '(?i)[-_.](decode|extend|prefill)\b')
        then 'file name'
        when a.prefills <> a.decodes
        then 'kernels'
    end as phase_source,
    t.name as step_name
from pass_windows as p
join raw_facts as f using (trace_id)
left join stepped as s using (trace_id, pass_no)
left join steps as t on t.trace_id = p.trace_id and t.event_id = s.step
left join attended as a on a.trace_id = p.trace_id and a.pass_no = p.pass_no
