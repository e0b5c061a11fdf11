-- Pairs of query and key in a causal sliding window, aligned bottom-right: a query sees itself
-- and the keys before it, window_size of them at most.
-- With n_q = n_kv = n >= window_size = w it is w * n - w * (w - 1) / 2.
--
-- n_q          query tokens of one sequence
-- n_kv         key tokens of it
-- window_size  keys that a query sees at most, itself included
create macro window_pairs(n_q, n_kv, window_size) as
    capped_sum(n_kv, window_size) - capped_sum(n_kv - n_q, window_size)
