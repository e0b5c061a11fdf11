-- One row a call of attention with its times and its place.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id       VARCHAR    -   the trace
-- call_no        BIGINT     -   0-based, in order of start
-- way            VARCHAR    -   how it was found: operator, unfused or kernels
-- key_event_id   BIGINT     -   the operator, else the kernel that it was found by
-- lead_event_id  BIGINT     -   its first activity that attends; NULL where none does
-- pass_no        BIGINT     -   its pass
-- loop_no        BIGINT     -   visit of the layers
-- layer_no       BIGINT     -   its layer
-- region         VARCHAR    -   prologue, layer, epilogue or outside; NULL when unknown
-- start_ns       BIGINT     ns  first start
-- end_ns         BIGINT     ns  last end
-- busy_ns        BIGINT     ns  union of the intervals of its activities
-- core_ns        BIGINT     ns  the part in which kernels attend
-- sum_dur_ns     BIGINT     ns  sum of durations
-- n_activities   BIGINT     -   activities
-- kernel_names   VARCHAR[]  -   readable names of the kernels that attend, longest first
-- phase_hint     VARCHAR    -   prefill or decode, where a kernel name tells
with
    placed as (
        select
            c.*,
            a.name,
            a.gpu_index,
            a.start_ns,
            a.end_ns,
            a.dur_ns,
            l.pass_no,
            l.loop_no,
            l.layer_no,
            l.region,
            s.simplified_name,
            n.phase,
            coalesce(n.role in ('core', 'combine', 'step'), false) as attends
        from call_activities as c
        join activities as a using (trace_id, event_id)
        left join activity_layers as l using (trace_id, event_id)
        left join kernel_categories as s on s.trace_id = a.trace_id and s.name = a.name
        left join attention_names as n on n.trace_id = a.trace_id and n.name = a.name
    ),

    covered as (
        select
            *,
            max(end_ns) over before as any_ns,
            max(case when attends then end_ns end) over before as core_end_ns
        from placed
        window
            before as (
                partition by trace_id, call_no
                order by start_ns, gpu_index
                rows between unbounded preceding and 1 preceding
            )
    ),

    -- Kernel names by time, for each call.
    named as (
        select trace_id, call_no, simplified_name, sum(dur_ns) as sum_ns, min(gpu_index) as first
        from placed
        where attends
        group by trace_id, call_no, simplified_name
    ),

    listed as (
        select trace_id, call_no, list(simplified_name order by sum_ns desc, first) as kernel_names
        from named
        group by trace_id, call_no
    )

select
    c.trace_id,
    c.call_no,
    any_value(c.way) as way,
    any_value(c.key_event_id) as key_event_id,
    arg_min(c.event_id, c.gpu_index) filter (c.attends) as lead_event_id,
    -- A call stands where its attending kernels stand.
    arg_min(c.pass_no, (not c.attends, c.gpu_index)) as pass_no,
    arg_min(c.loop_no, (not c.attends, c.gpu_index)) as loop_no,
    arg_min(c.layer_no, (not c.attends, c.gpu_index)) as layer_no,
    arg_min(c.region, (not c.attends, c.gpu_index)) as region,
    min(c.start_ns) as start_ns,
    max(c.end_ns) as end_ns,
    cast(
        coalesce(sum(greatest(c.end_ns - greatest(c.start_ns, c.any_ns), 0)), 0) as bigint
    ) as busy_ns,
    cast(
        coalesce(
            sum(greatest(c.end_ns - greatest(c.start_ns, c.core_end_ns), 0)) filter (c.attends), 0
        ) as bigint
    ) as core_ns,
    cast(coalesce(sum(c.dur_ns), 0) as bigint) as sum_dur_ns,
    count(*) as n_activities,
    coalesce(any_value(l.kernel_names), []) as kernel_names,
    max(c.phase) as phase_hint
from covered as c
left join listed as l using (trace_id, call_no)
group by c.trace_id, c.call_no
