-- Pairs of query and key under a causal mask aligned bottom-right: the last query sees all keys.
-- So mask flash-attn from 2.1 on, AITER, FlashInfer, and every prefill behind a cached prefix.
-- With n_kv >= n_q it is n_q * n_kv - n_q * (n_q - 1) / 2, else n_kv * (n_kv + 1) / 2.
--
-- n_q   query tokens of one sequence
-- n_kv  key tokens of it, those of the queries included
create macro causal_br_pairs(n_q, n_kv) as
    capped_sum(n_kv, n_kv) - capped_sum(n_kv - n_q, n_kv)
