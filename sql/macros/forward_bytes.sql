-- Bytes that attention forward must move: query, key and value read once, output written once.
--
-- q_tokens   query tokens, over the batch
-- kv_tokens  key tokens that are read, over the batch
-- h_q        query heads
-- h_kv       key and value heads in memory
-- d_qk       head size of query and key
-- d_v        head size of value
-- latent     whether value is a part of key, as in MLA, and needs no reading of its own
-- q_bytes    bytes of an element of the query
-- kv_bytes   of key and value, or of their cache
-- o_bytes    of the output
create macro forward_bytes(
    q_tokens, kv_tokens, h_q, h_kv, d_qk, d_v, latent, q_bytes, kv_bytes, o_bytes
) as
    q_tokens::double * h_q * (d_qk * q_bytes + d_v * o_bytes)
    + kv_tokens::double * h_kv * (d_qk + if(latent, 0, d_v)) * kv_bytes
