-- One row an operation of attention that computes a prompt or trains, with the share of the
-- roofline to expect of flash attention at its length. It is context: no finding comes or goes
-- by it. Steps of decoding have none; that of a backward pass is a guess, 4/5 of the forward.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id     VARCHAR  -  the trace
-- op_no        BIGINT   -  the operation
-- band_length  DOUBLE   -  length that counts: keys of a query, of a causal mask twice their mean
-- band_lo      DOUBLE   -  least percentage to expect
-- band_hi      DOUBLE   -  most
-- wave_share   DOUBLE   -  of the roofline, what whole rounds of tiles leave; 1 where unknown
with
    measured as (
        select
            t.trace_id,
            t.op_no,
            if(s.direction = 'bwd', 0.8, 1.0) as factor,
            if(starts_with(s.mask, 'causal'), 2, 1) * (t.pairs_lo + t.pairs_hi) / 2 as pairs,
            coalesce(t.ctx_tokens, s.n_q * coalesce(s.batch, 1)) as n_rows,
            p.roofline_us / greatest(p.roofline_us, coalesce(p.tile_us, 0)) as wave_share
        from attention_op_times as t
        join attention_op_shapes as s using (trace_id, op_no)
        join attention_op_peaks as p using (trace_id, op_no)
        where
            coalesce(t.phase, 'prefill') in ('prefill', 'train_fwd', 'train_bwd')
            and s.implementation not in ('cache', 'linear')
    ),

    sized as (
        select *, pairs / nullif(n_rows, 0) as band_length, log2(greatest(band_length, 1)) as x
        from measured
        where pairs > 0
    )

select
    trace_id,
    op_no,
    band_length,
    factor * case
        when x <= 9
        then 5
        when x <= 10
        then 5 + 15 * (x - 9)
        when x <= 11
        then 20 + 20 * (x - 10)
        else least(40 + 10 * (x - 11), 50)
    end as band_lo,
    factor * case
        when x <= 9
        then 15
        when x <= 10
        then 15 + 25 * (x - 9)
        when x <= 11
        then 40 + 20 * (x - 10)
        else least(60 + 10 * (x - 11), 70)
    end as band_hi,
    coalesce(wave_share, 1) as wave_share
from sized
where n_rows > 0
