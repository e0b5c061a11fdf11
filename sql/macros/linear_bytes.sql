-- Bytes that linear attention must move: query, key, value and two gates of each token and head
-- are read, its output written; the state of each sequence is read and written once.
--
-- tokens       tokens, over the batch
-- n_seqs       sequences, each of which has a state
-- h_qk         query and key heads
-- h_v          value heads
-- d_qk         head size of query and key
-- d_v          head size of value
-- token_bytes  bytes of an element of query, key, value, gates and output
-- state_bytes  of an element of the state: 4, as it is kept in fp32
create macro linear_bytes(tokens, n_seqs, h_qk, h_v, d_qk, d_v, token_bytes, state_bytes) as
    tokens::double * (2 * h_qk * d_qk + 2 * h_v * d_v + 2 * h_v) * token_bytes
    + 2 * n_seqs::double * h_v * d_qk * d_v * state_bytes
