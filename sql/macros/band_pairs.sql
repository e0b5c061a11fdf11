-- Pairs of query and key in a band around the diagonal, aligned bottom-right: the window of
-- flash-attn's window_size=(left, right). Of the keys j <= p + right those j < p - left do not
-- count, p being the query's place among the keys.
--
-- n_q      query tokens of one sequence
-- n_kv     key tokens of it
-- n_left   keys to the left of its own that a query sees
-- n_right  keys to the right of its own
create macro band_pairs(n_q, n_kv, n_left, n_right) as
    capped_sum(n_kv + n_right, n_kv)
    - capped_sum(n_kv - n_q + n_right, n_kv)
    - capped_sum(n_kv - n_left - 1, n_kv)
    + capped_sum(n_kv - n_q - n_left - 1, n_kv)
