-- One row a call of attention: what holds a kernel back beside peak and bandwidth. Tiles take
-- the SMs or CUs in rounds, of which the last leaves some idle, and a launch takes its time.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id   VARCHAR  -   the trace
-- call_no    BIGINT   -   the call
-- tiles      DOUBLE   -   parts that SMs or CUs can compute beside each other; NULL when unknown
-- tile_us    DOUBLE   us  operations at the peak, in whole rounds of tiles; NULL when unknown
-- launch_us  DOUBLE   us  what a kernel takes at least in this trace; NULL when unknown
select
    p.trace_id,
    p.call_no,
    coalesce(t.ctx_tiles + t.gen_tiles, t.ctx_tiles, t.gen_tiles) as tiles,
    -- TFLOPS are 1e6 operations in a us. Prefill and decoding can share a round.
    greatest(
        ceil(t.ctx_tiles / p.units) * p.units / t.ctx_tiles * t.ctx_flops,
        ceil(t.gen_tiles / p.units) * p.units / t.gen_tiles * t.gen_flops
    )
    / p.peak_tflops
    / 1e6 as tile_us,
    f.launch_ns / 1e3 as launch_us
from attention_peaks as p
left join attention_tiles as t using (trace_id, call_no)
left join launch_floors as f using (trace_id)
