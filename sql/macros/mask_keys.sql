-- Keys of one sequence that at least one query sees under a mask, and that must be read. Top-k
-- attention reads no more than its pairs, and which of them coincide is not known.
--
-- mask         as in mask_pairs
-- n_q          query tokens of the sequence
-- n_kv         key tokens of it
-- window_size  keys of a window, or tokens of a chunk
-- top_k        keys that a query of sparse attention attends to
create macro mask_keys(mask, n_q, n_kv, window_size, top_k) as
    case mask
        when 'window'
        then window_keys(n_q, n_kv, window_size)
        when 'chunked'
        then chunked_keys(n_q, n_kv, window_size)
        when 'topk'
        then if(topk_pairs(n_q, n_kv, top_k) < n_kv, topk_pairs(n_q, n_kv, top_k), n_kv)
        when 'causal_tl'
        then if(n_q < n_kv, n_q, n_kv)::double
        else n_kv::double
    end
