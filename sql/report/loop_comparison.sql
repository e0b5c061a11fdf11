-- One row a loop over all complete passes of a kind and phase, as a report compares them.
-- grain: trace_id, kind, phase, stack_no, loop_no
--
-- trace_id         VARCHAR  -    the trace
-- kind             VARCHAR  -    kind of pass
-- phase            VARCHAR  -    its phase; unknown where nothing tells
-- label            VARCHAR  -    kind and phase in as few words as tell them
-- stack_no         BIGINT   -    0-based stack of layers that loop together
-- loop_no          BIGINT   -    0-based loop
-- n_passes         BIGINT   -    passes that run it
-- median_wall_ms   DOUBLE   ms   median wall
-- min_wall_ms      DOUBLE   ms   shortest
-- max_wall_ms      DOUBLE   ms   longest
-- ratio            DOUBLE   -    median against that of loop 0
-- least_layer_pct  DOUBLE   pct  least change of a layer against its visit in loop 0
-- most_layer_pct   DOUBLE   pct  most change
-- differs          BOOLEAN  -    more than 5 % off the other loops
-- notes            VARCHAR  -    how it differs, and in which layer most
select
    trace_id,
    kind,
    phase,
    if(kind = 'target' or starts_with(phase, kind), phase, kind || ' ' || phase) as label,
    stack_no,
    loop_no,
    n_passes,
    median_wall_ns / 1e6 as median_wall_ms,
    min_wall_ns / 1e6 as min_wall_ms,
    max_wall_ns / 1e6 as max_wall_ms,
    ratio,
    least_layer_pct,
    most_layer_pct,
    differs,
    case
        when differs and loop_no = 0
        then printf('differs: %+.1f %%', off_pct)
        when differs and off_pct > 0
        then printf('differs: %+.1f %%; layer %d %+.1f %%', off_pct, most_layer_no, most_layer_pct)
        when differs
        then
            printf('differs: %+.1f %%; layer %d %+.1f %%', off_pct, least_layer_no, least_layer_pct)
    end as notes
from loop_medians
