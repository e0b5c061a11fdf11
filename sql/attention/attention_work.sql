-- One row an attention call with the work that its shape asks for: pairs of query and key, FLOPs
-- and the bytes that must be moved, each tensor once and at its own type. Where lengths of single
-- sequences are not told, the likeliest number stands between the least and the most.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id         VARCHAR  -      the trace
-- call_no          BIGINT   -      the call
-- pairs_lo         DOUBLE   -      pairs of query and key of a head, at least
-- pairs_hi         DOUBLE   -      at most; NULL where nothing bounds them
-- flops            DOUBLE   -      FLOPs; NULL where unknown, 0 where a cache is only written
-- flops_lo         DOUBLE   -      at least
-- flops_hi         DOUBLE   -      at most
-- bytes            DOUBLE   -      bytes to move: forward_bytes or backward_bytes, and the bias
-- bytes_pages      DOUBLE   -      the same with the cache read in whole pages, at most
-- score_bytes      DOUBLE   bytes  traffic of the matrix of scores of unfused attention, besides
-- ctx_flops        DOUBLE   -      FLOPs of what is in prefill
-- gen_flops        DOUBLE   -      FLOPs of what generates
-- ctx_bytes        DOUBLE   bytes  bytes of what is in prefill
-- gen_bytes        DOUBLE   bytes  bytes of what generates
-- ctx_tokens       DOUBLE   -      query tokens in prefill
-- gen_tokens       DOUBLE   -      query tokens of generation
-- phase            VARCHAR  -      prefill, decode, mixed, train_fwd or train_bwd
-- phase_source     VARCHAR  -      what tells the phase
-- formula          VARCHAR  -      which formula counts, such as causal_br_prefill
-- mask_assumption  VARCHAR  -      what is assumed of mask and lengths; NULL where nothing is
-- problem          VARCHAR  -      why a number is missing, and what would tell
with
    worked as (
        select
            c.* exclude (problem),
            s.* exclude (trace_id, call_no),
            p.phase,
            p.phase_source,
            m.by_load,
            m.mask as used_mask,
            m.formula,
            m.mask_assumption,
            l.note,
            q.problem,
            s.is_whole and p.phase = 'prefill' as all_ctx,
            s.is_whole and p.phase = 'decode' as all_gen,
            c.n_q * coalesce(c.batch, 1) as n_rows
        from attention_calls as c
        left join call_masks as m using (trace_id, call_no)
        left join call_phases as p using (trace_id, call_no)
        left join attention_loads as l using (trace_id, call_no)
        left join call_sums as s using (trace_id, call_no)
        left join call_problems as q using (trace_id, call_no)
    )

select
    trace_id,
    call_no,
    pairs_lo,
    pairs_hi,
    flops,
    flops_lo,
    flops_hi,
    bytes,
    bytes + page_gap_bytes as bytes_pages,
    score_bytes,
    if(all_ctx, flops, ctx_flops) as ctx_flops,
    if(all_gen, flops, gen_flops) as gen_flops,
    if(all_ctx, bytes, ctx_bytes) as ctx_bytes,
    if(all_gen, bytes, gen_bytes) as gen_bytes,
    if(all_ctx, n_rows, ctx_tokens) as ctx_tokens,
    if(all_gen, n_rows, gen_tokens) as gen_tokens,
    phase,
    phase_source,
    case
        when implementation = 'cache'
        then 'cache_write'
        when flops is not null
        then
            concat_ws(
                '_',
                formula,
                case
                    when direction = 'bwd'
                    then 'bwd'
                    when by_load and phase in ('prefill', 'decode', 'mixed')
                    then phase
                    else 'fwd'
                end
            )
    end as formula,
    if(
        flops is null,
        null,
        nullif(
            concat_ws(
                '; ',
                mask_assumption,
                if(by_load, note, null),
                if(
                    pairs_lo < pairs_hi
                    and note is null
                    and used_mask in ('window', 'chunked', 'topk'),
                    'sequences of equal length, as only their sum is told',
                    null
                )
            ),
            ''
        )
    ) as mask_assumption,
    problem
from worked
