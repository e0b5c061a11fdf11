-- Bytes that attention backward must move: query, key, value, output, its gradient, and for each
-- query of a head two fp32 numbers (log of the sum of weights, output by gradient) are read; the
-- gradients of query, key and value are written.
--
-- q_tokens ... o_bytes  as in forward_bytes
create macro backward_bytes(
    q_tokens, kv_tokens, h_q, h_kv, d_qk, d_v, latent, q_bytes, kv_bytes, o_bytes
) as
    q_tokens::double * h_q * (2 * d_qk * q_bytes + 2 * d_v * o_bytes + 8)
    + 2 * kv_tokens::double * h_kv * (d_qk + if(latent, 0, d_v)) * kv_bytes
