-- Pairs of query and key under a causal mask aligned top-left: the first query sees the first
-- key alone. So masks is_causal=True of scaled_dot_product_attention in PyTorch.
-- With n_kv >= n_q it is n_q * (n_q + 1) / 2.
--
-- n_q   query tokens of one sequence
-- n_kv  key tokens of it
create macro causal_tl_pairs(n_q, n_kv) as
    capped_sum(n_q, n_kv)
