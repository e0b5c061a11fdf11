-- One row a call of attention: into how many tiles its work can be cut, each for one SM or CU. A
-- tile is 128 queries of a head, or 128 keys where gradients are computed. Of decoding, whose
-- queries are few, it is 256 keys of a key head with all queries that share it.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id   VARCHAR  -  the trace
-- call_no    BIGINT   -  the call
-- ctx_tiles  DOUBLE   -  tiles of prefill, training or encoding; NULL when unknown
-- gen_tiles  DOUBLE   -  tiles of decoding; NULL when unknown
-- ctx_flops  DOUBLE   -  floating point operations in ctx_tiles
-- gen_flops  DOUBLE   -  floating point operations in gen_tiles
with
    counted as (
        select
            c.trace_id,
            c.call_no,
            c.direction,
            c.h_q,
            c.h_kv,
            coalesce(c.batch, 1) as batch,
            c.n_q,
            coalesce(c.window_size, c.top_k) as keys_at_most,
            c.n_kv,
            coalesce(w.phase = 'decode', false) as decodes,
            -- Sequences of packed tokens, as far as they are known.
            coalesce(l.c_n, if(decodes, 0, coalesce(c.n_seqs, 1))) as ctx_n,
            coalesce(l.c_sq, if(decodes, 0, c.n_q)) as ctx_q,
            coalesce(l.g_n, if(decodes, coalesce(c.n_seqs, 1), 0)) as gen_n,
            coalesce(l.g_sq, if(decodes, c.n_q, 0)) as gen_q,
            coalesce(l.g_sk, if(decodes, c.n_kv, 0)) as gen_kv,
            w.flops,
            w.ctx_flops,
            w.gen_flops
        from attention_calls as c
        join attention_work as w using (trace_id, call_no)
        left join
            attention_loads as l on l.trace_id = c.trace_id and l.call_no = c.call_no and c.packed
        where c.implementation in ('flash', 'paged', 'standard', 'unfused')
    ),

    cut as (
        select
            *,
            -- Equal sequences: what the trace tells is their sum.
            batch
            * h_q
            * ctx_n
            * ceil(if(direction = 'bwd', n_kv, ctx_q) / nullif(ctx_n, 0) / 128) as ctx,
            batch
            * h_kv
            * gen_n
            * ceil(gen_q / nullif(gen_n, 0) * h_q / nullif(h_kv, 0) / 128)
            * ceil(least(gen_kv / nullif(gen_n, 0), keys_at_most) / 256) as gen
        from counted
    )

select
    trace_id,
    call_no,
    -- More than can be counted are none.
    if(ctx between 1 and 1e15, ctx, null) as ctx_tiles,
    if(gen between 1 and 1e15, gen, null) as gen_tiles,
    if(ctx > 0, coalesce(nullif(ctx_flops, 0), if(decodes, null, flops)), null) as ctx_flops,
    if(gen > 0, coalesce(nullif(gen_flops, 0), if(decodes, flops, null)), null) as gen_flops
from cut
