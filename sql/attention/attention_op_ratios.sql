-- One row an operation of attention with its shares and ratios.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id          VARCHAR  -  the trace
-- op_no             BIGINT   -  the operation
-- operation         VARCHAR  -  its operator, else its kernels, else the rule that knows it
-- pct_of_attention  DOUBLE   -  percentage of the time of all calls of attention
-- pct_of_busy       DOUBLE   -  percentage of the time in which the device works
-- pct_of_wall       DOUBLE   -  percentage of the time from first start to last end
-- flops_per_byte    DOUBLE   -  arithmetic intensity
-- anomaly           BOOLEAN  -  efficiency is over 110 %: work or peak is wrong
-- ctx_ratio         DOUBLE   -  share of prefill in the tokens
-- ctx_flops_ratio   DOUBLE   -  share of prefill in the FLOPs
-- gen_bytes_ratio   DOUBLE   -  share of generation in the bytes
-- workload          VARCHAR  -  prefill_heavy: ctx_ratio > 0.8, decode_heavy: < 0.2, mixed, unknown
-- gqa_ratio         DOUBLE   -  query heads of a key head
-- pattern           VARCHAR  -  MHA, GQA, MQA or MLA
-- band_lo           DOUBLE   -  least percentage to expect at its length; NULL for decoding
-- band_hi           DOUBLE   -  most
-- in_band           BOOLEAN  -  whether its efficiency is between both
-- band_adj_lo       DOUBLE   -  least percentage to expect of as few tiles as it has
-- band_adj_hi       DOUBLE   -  most
with
    split as (
        select
            *,
            ctx_tokens / nullif(coalesce(ctx_tokens, 0) + coalesce(gen_tokens, 0), 0) as by_tokens,
            if(ctx_tokens is null and gen_tokens > 0, 0, by_tokens) as ctx_ratio,
            coalesce(ctx_flops, 0) + coalesce(gen_flops, 0) as both_flops,
            coalesce(ctx_bytes, 0) + coalesce(gen_bytes, 0) as both_bytes
        from attention_op_times
    )

select
    t.trace_id,
    t.op_no,
    coalesce(
        t.operator,
        nullif(array_to_string(t.kernel_names[:3], ' + '), ''),
        k.top_kernel,
        s.family,
        s.implementation,
        'attention'
    ) as operation,
    100 * t.sum_us / nullif(sum(t.sum_us) over (partition by t.trace_id), 0) as pct_of_attention,
    t.sum_us / nullif(w.busy_ms, 0) / 10 as pct_of_busy,
    t.sum_us / nullif(w.wall_ms, 0) / 10 as pct_of_wall,
    t.flops / nullif(t.bytes, 0) as flops_per_byte,
    coalesce(p.efficiency_pct > 110, false) as anomaly,
    t.ctx_ratio,
    coalesce(t.ctx_flops, 0) / nullif(t.both_flops, 0) as ctx_flops_ratio,
    coalesce(t.gen_bytes, 0) / nullif(t.both_bytes, 0) as gen_bytes_ratio,
    case
        when t.ctx_ratio > 0.8
        then 'prefill_heavy'
        when t.ctx_ratio < 0.2
        then 'decode_heavy'
        when t.ctx_ratio is not null
        then 'mixed'
        else 'unknown'
    end as workload,
    s.h_q / nullif(s.h_kv, 0) as gqa_ratio,
    case
        when s.latent
        then 'MLA'
        when s.h_kv = s.h_q
        then 'MHA'
        -- Of a model that is split over ranks, one key head of a rank is one of several.
        when s.h_kv = 1 and coalesce(f.world_size, 1) = 1
        then 'MQA'
        when s.h_kv < s.h_q
        then 'GQA'
    end as pattern,
    b.band_lo,
    b.band_hi,
    p.efficiency_pct between b.band_lo and b.band_hi as in_band,
    b.band_lo * b.wave_share as band_adj_lo,
    b.band_hi * b.wave_share as band_adj_hi
from split as t
join attention_op_shapes as s using (trace_id, op_no)
join attention_op_peaks as p using (trace_id, op_no)
left join raw_facts as f on f.trace_id = t.trace_id
left join attention_op_parts as k using (trace_id, op_no)
left join attention_op_bands as b using (trace_id, op_no)
left join attention_shares as w on w.trace_id = t.trace_id and w.scope = 'trace'
