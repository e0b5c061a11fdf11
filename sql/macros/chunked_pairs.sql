-- Pairs of query and key under a causal mask in chunks, aligned bottom-right: a query sees itself
-- and the keys before it in its own chunk, which begin at the multiples of chunk_size.
--
-- n_q         query tokens of one sequence
-- n_kv        key tokens of it
-- chunk_size  tokens of a chunk
create macro chunked_pairs(n_q, n_kv, chunk_size) as
    chunk_sum(n_kv, chunk_size) - chunk_sum(n_kv - n_q, chunk_size)
