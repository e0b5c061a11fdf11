-- One row a trace and phase with a steady state: the first stable pass.
-- grain: trace_id, phase
--
-- trace_id  VARCHAR  -  the trace
-- phase     VARCHAR  -  the phase
-- pass_no   BIGINT   -  first pass whose two last changes of layer 0 are within 5 %
select trace_id, phase, min(pass_no) as pass_no
from pass_changes
where stable
group by trace_id, phase
