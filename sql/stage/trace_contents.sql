-- One row a trace: what its events say of the part of a run that it records.
-- grain: trace_id
--
-- trace_id       VARCHAR    -  the trace
-- ranks          VARCHAR[]  -  labels of the ranks that SGLang merged into it; NULL for one rank
-- captures_only  BOOLEAN    -  graphs are captured, and none is replayed
with
    labels as (
        select trace_id, regexp_extract(pid, '^\[([A-Z]+\d+(?:-[A-Z]+\d+)*)\]', 1) as label
        from (select distinct trace_id, pid from events)
    ),

    merged as (
        select trace_id, list(distinct label order by label) as ranks
        from labels
        where label != ''
        group by trace_id
        having count(distinct label) > 1
    ),

    -- A run that is profiled from its start captures, too, but then it replays.
    captures as (
        select trace_id
        from events
        where cat in ('cuda_runtime', 'cuda_driver') and regexp_matches(name, 'Capture|GraphLaunch')
        group by trace_id
        having
            bool_or(contains(name, 'StreamBeginCapture'))
            and not bool_or(contains(name, 'GraphLaunch'))
    )

select f.trace_id, m.ranks, c.trace_id is not null as captures_only
from raw_facts as f
left join merged as m using (trace_id)
left join captures as c using (trace_id)
