-- One row a match with what trace 1 would gain by being like trace 2, in percent of its wall
-- time: all of the gap at the high end, seven eighths in the middle, three quarters at the low
-- end.
-- grain: trace_id, other_trace_id, match_no
-- keep: session
--
-- trace_id           VARCHAR  -  trace 1
-- other_trace_id     VARCHAR  -  trace 2
-- match_no           BIGINT   -  the match
-- op_no              BIGINT   -  operation of trace 1 that stands for it
-- direction          VARCHAR  -  fwd or bwd
-- bound_type         VARCHAR  -  compute or memory; unknown where no roofline is known
-- library            VARCHAR  -  whose kernels they are; Unknown where names do not tell
-- impact_score       DOUBLE   -  the middle
-- impact_score_low   DOUBLE   -  the low end
-- impact_score_high  DOUBLE   -  the high end
with
    gaps as (
        select
            m.trace_id,
            m.other_trace_id,
            m.match_no,
            o.op_no,
            o.direction,
            coalesce(o.bound, 'unknown') as bound_type,
            coalesce(o.library, 'Unknown') as library,
            greatest(1 - m.efficiency_pct / 100, 0) * m.pct_of_wall as gain
        from attention_matches as m
        join attention_ops as o on o.trace_id = m.trace_id and o.op_no = m.op_nos[1]
        where m.efficiency_pct is not null
    )

select
    * exclude (gain),
    round(0.875 * gain, 2) as impact_score,
    round(0.75 * gain, 2) as impact_score_low,
    round(gain, 2) as impact_score_high
from gaps
where gain >= 0.01
