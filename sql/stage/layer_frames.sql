-- One row a python frame of a transformer layer's module (`nn.Module: Qwen2DecoderLayer_17`).
-- The layer class is the outermost numbered class with two or more members: the one whose
-- frames last longest in sum.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id     VARCHAR  -   the trace
-- event_id     BIGINT   -   the frame
-- class        VARCHAR  -   class of the layer module
-- frame_index  BIGINT   -   number the profiler gave the instance, by first appearance
-- pid          VARCHAR  -   host process
-- tid          VARCHAR  -   host thread
-- start_ns     BIGINT   ns  start
-- end_ns       BIGINT   ns  end
with
    frames as (
        select
            trace_id,
            event_id,
            regexp_extract(
                name, '^nn\.Module: (.*(?:Layer|Block))_(\d+)$', ['class', 'number']
            ) as module,
            pid,
            tid,
            ts_ns,
            dur_ns
        from events
        where
            cat = 'python_function'
            and starts_with(name, 'nn.Module: ')
            and ts_ns is not null
            and dur_ns is not null
    ),

    classes as (
        select trace_id, module.class as class
        from frames
        where module.class <> ''
        group by trace_id, module.class
        having count(distinct module.number) > 1
        qualify
            row_number() over (partition by trace_id order by sum(dur_ns) desc, module.class) = 1
    )

select
    f.trace_id,
    f.event_id,
    f.module.class as class,
    cast(f.module.number as bigint) as frame_index,
    f.pid,
    f.tid,
    f.ts_ns as start_ns,
    f.ts_ns + f.dur_ns as end_ns
from frames as f
join classes as c on c.trace_id = f.trace_id and c.class = f.module.class
