-- One row a complete pass: how layer 0 changed against the pass before it of the same kind and
-- phase. A pass is stable when this change and the one before are both within 5 %, whatever the
-- latency.
-- grain: trace_id, pass_no
--
-- trace_id        VARCHAR  -    the trace
-- pass_no         BIGINT   -    the pass
-- kind            VARCHAR  -    target, draft or mtp
-- phase           VARCHAR  -    its phase; unknown where nothing tells
-- first_layer_ns  BIGINT   ns   wall of layer 0
-- change_pct      DOUBLE   pct  change against the pass before
-- stable          BOOLEAN  -    this change and the one before are within 5 %
with
    changes as (
        select
            trace_id,
            pass_no,
            kind,
            coalesce(phase, 'unknown') as phase,
            first_layer_ns,
            100.0
            * (first_layer_ns - lag(first_layer_ns) over of_kind)
            / nullif(lag(first_layer_ns) over of_kind, 0) as change_pct
        from passes
        where status = 'complete' and first_layer_ns is not null
        window of_kind as (partition by trace_id, kind, coalesce(phase, 'unknown') order by pass_no)
    )

select
    trace_id,
    pass_no,
    kind,
    phase,
    first_layer_ns,
    change_pct,
    coalesce(
        abs(change_pct) <= 5
        and abs(lag(change_pct) over (partition by trace_id, kind, phase order by pass_no)) <= 5,
        false
    ) as stable
from changes
