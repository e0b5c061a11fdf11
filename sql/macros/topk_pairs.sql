-- Pairs of query and key where each query attends to the top_k keys that an indexer chose among
-- those a causal mask (bottom-right) shows it, or to all of these while there are fewer.
--
-- n_q    query tokens of one sequence
-- n_kv   key tokens of it
-- top_k  keys that a query attends to at most
create macro topk_pairs(n_q, n_kv, top_k) as
    window_pairs(n_q, n_kv, top_k)
