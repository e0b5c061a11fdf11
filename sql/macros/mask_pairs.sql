-- Pairs of query and key of one sequence under a mask, by its word in attention_calls. NULL for
-- a word that does not say which keys are seen, such as block_sparse.
--
-- mask         dense, causal_tl, causal_br, window, chunked or topk
-- n_q          query tokens of the sequence
-- n_kv         key tokens of it
-- window_size  keys of a window, or tokens of a chunk
-- top_k        keys that a query of sparse attention attends to
create macro mask_pairs(mask, n_q, n_kv, window_size, top_k) as
    case mask
        when 'dense'
        then n_q::double * n_kv::double
        when 'causal_tl'
        then causal_tl_pairs(n_q, n_kv)
        when 'causal_br'
        then causal_br_pairs(n_q, n_kv)
        when 'window'
        then window_pairs(n_q, n_kv, window_size)
        when 'chunked'
        then chunked_pairs(n_q, n_kv, window_size)
        when 'topk'
        then topk_pairs(n_q, n_kv, top_k)
    end
