-- One row an operator that is a call of attention, with the shape that its arguments tell. A
-- backward operator without shapes has those of its forward one.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id         VARCHAR  -  the trace that holds it
-- event_id         BIGINT   -  the operator
-- source_event_id  BIGINT   -  the operator whose arguments tell: itself or its forward one
-- batch            DOUBLE   -  batch
-- n_q              DOUBLE   -  query tokens of a sequence; of all where packed
-- n_kv             DOUBLE   -  key tokens; NULL where only the load of the step tells
-- h_q              DOUBLE   -  query heads
-- h_kv             DOUBLE   -  key and value heads in memory
-- d_qk             DOUBLE   -  head size of query and key
-- d_v              DOUBLE   -  head size of value
-- n_seqs           DOUBLE   -  sequences of packed lengths
-- max_q            DOUBLE   -  longest query told
-- max_kv           DOUBLE   -  longest key told
-- mask             VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk or unknown
-- window_size      DOUBLE   -  keys of a window, the query's own included, or of a chunk
-- top_k            DOUBLE   -  keys that a query of sparse attention sees
-- mask_source      VARCHAR  -  argument, family or assumed
-- bias_elements    DOUBLE   -  elements of a bias or mask that are read; 0 without one
-- q_dtype          VARCHAR  -  type of the query
-- kv_dtype         VARCHAR  -  type of key and value, or of their cache
-- o_dtype          VARCHAR  -  type of the output
-- bias_dtype       VARCHAR  -  type of the bias
-- latent           BOOLEAN  -  key and value are one compressed tensor
-- packed           BOOLEAN  -  tokens of several requests stand in one dimension
-- in_pool          BOOLEAN  -  key and value are a pool of which a part is read
-- q_head           DOUBLE   -  head size of the query as it was passed
-- out_head         DOUBLE   -  head size of the output
with
    own as (
        select
            l.trace_id,
            l.event_id,
            coalesce(l.batch, g.batch) as batch,
            coalesce(l.n_q, g.n_q) as n_q,
            coalesce(l.n_kv, g.n_kv) as n_kv,
            coalesce(l.h_q, g.h_q) as h_q,
            coalesce(l.h_kv, g.h_kv) as h_kv,
            coalesce(l.d_qk, g.d_qk) as d_qk,
            coalesce(l.d_v, g.d_v) as d_v,
            coalesce(a.n_seqs, l.rows, g.n_seqs) as n_seqs,
            coalesce(a.max_q, l.row_q) as max_q,
            a.max_kv,
            m.mask,
            m.window_size,
            m.top_k,
            m.mask_source,
            m.bias_elements,
            coalesce(a.q_dtype, g.q_dtype) as q_dtype,
            coalesce(a.kv_dtype, g.kv_dtype) as kv_dtype,
            coalesce(a.out_dtype, a.q_dtype, g.q_dtype) as o_dtype,
            a.bias_dtype,
            coalesce(l.latent, false) as latent,
            coalesce(g.packed, l.packed) as packed,
            coalesce(l.in_pool, false) as in_pool,
            l.q_head,
            l.out_head
        from attention_arguments as a
        join argument_shapes as l using (trace_id, event_id)
        join argument_masks as m using (trace_id, event_id)
        left join guessed_shapes as g using (trace_id, event_id)
    ),

    -- Where its own shape is not told, all is its forward's; else its mask may be.
    tied as (
        select
            o.trace_id,
            o.event_id,
            coalesce(
                if(o.h_q is null and f.h_q is not null, f.event_id, null), o.event_id
            ) as from_id,
            if(o.mask = 'unknown', f.event_id, null) as mask_id
        from own as o
        left join operator_links as l using (trace_id, event_id)
        left join own as f on f.trace_id = o.trace_id and f.event_id = l.forward_event_id
    )

select
    t.trace_id,
    t.event_id,
    t.from_id as source_event_id,
    o.* exclude (trace_id, event_id) replace (
        coalesce(m.mask, o.mask) as mask,
        if(m.mask is null, o.window_size, m.window_size) as window_size,
        coalesce(m.mask_source, o.mask_source) as mask_source
    )
from tied as t
join own as o on o.trace_id = t.trace_id and o.event_id = t.from_id
left join own as m on m.trace_id = t.trace_id and m.event_id = t.mask_id
