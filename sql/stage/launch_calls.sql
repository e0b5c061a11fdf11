-- One row a correlation id that a host call has: the call, whatever it is named. Of several it
-- is a runtime or driver call, then the first. What runs on a device, or only waits or measures
-- there, is none. Ranks of a merged file are kept apart: they reuse ids.
-- grain: trace_id, rank_label, correlation
-- keep: yes
--
-- trace_id     VARCHAR  -   the trace
-- rank_label   VARCHAR  -   label of its rank in a merged file; NULL in others
-- correlation  BIGINT   -   the id; 0 and -1 are none
-- event_id     BIGINT   -   the call
-- name         VARCHAR  -   its name
-- pid          VARCHAR  -   host process
-- tid          VARCHAR  -   host thread
-- start_ns     BIGINT   ns  start
-- external_id  BIGINT   -   id shared with the operator
with
    chosen as (
        select
            trace_id,
            rank_label_of(pid) as rank_label,
            correlation,
            arg_min(
                {'id':event_id, 'name':name, 'pid':pid, 'tid':tid, 'ns':ts_ns, 'op':external_id},
                event_id + if(is_runtime_call(cat), 0, 1::bigint << 60)
            ) as call
        from timed_events
        where correlation > 0 and ts_ns is not null and is_host_side(cat)
        group by all
    )

select
    trace_id,
    rank_label,
    correlation,
    call.id as event_id,
    call.name as name,
    call.pid as pid,
    call.tid as tid,
    call.ns as start_ns,
    call.op as external_id
from chosen
