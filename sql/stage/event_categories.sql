-- One row a category and phase letter of events, with what they are taken for: nothing is left
-- out in silence.
-- grain: trace_id, cat, ph
-- keep: store
--
-- trace_id  VARCHAR  -  the trace
-- cat       VARCHAR  -  category as the profiler wrote it; NULL where an event has none
-- ph        VARCHAR  -  phase letter of the Chrome format; NULL where an event has none
-- taken_as  VARCHAR  -  work, launch, operator, frame, annotation, wait, flow, ..., or other
-- n_events  BIGINT   -  how many
with
    counted as (
        select trace_id, cat, ph, count(*) as n_events from events group by trace_id, cat, ph
    )

select
    trace_id,
    cat,
    ph,
    case
        when ph = 'M'
        then 'metadata'
        when ph in ('s', 't', 'f')
        then 'flow'
        when ph in ('i', 'I', 'n', 'R')
        then 'instant'
        when ph = 'C'
        then 'counter'
        when is_device_work(cat)
        then 'work'
        when is_runtime_call(cat)
        then 'launch'
        when is_operator(cat)
        then 'operator'
        when lower(cat) = 'python_function'
        then 'frame'
        when lower(cat) in ('user_annotation', 'gpu_user_annotation')
        then 'annotation'
        when lower(cat) in ('cuda_sync', 'xpu_sync', 'cuda_event', 'overhead')
        then 'wait'
        when lower(cat) = 'trace'
        then 'span'
        else 'other'
    end as taken_as,
    n_events
from counted
