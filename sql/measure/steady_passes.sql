-- One row a trace, kind and phase with a steady state: the first stable pass.
-- grain: trace_id, kind, phase
--
-- trace_id  VARCHAR  -  the trace
-- kind      VARCHAR  -  target, draft or mtp
-- phase     VARCHAR  -  the phase
-- pass_no   BIGINT   -  first pass whose two last changes of layer 0 are within 5 %
select trace_id, kind, phase, min(pass_no) as pass_no
from pass_changes
where stable
group by trace_id, kind, phase
