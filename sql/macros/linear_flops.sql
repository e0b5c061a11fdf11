-- FLOPs of linear attention by the gated delta rule: for each token and value head the state of
-- d_qk times d_v numbers decays (1), is multiplied by key (2), updated (2) and by query (2).
--
-- tokens  tokens, over the batch
-- h_v     value heads
-- d_qk    head size of query and key
-- d_v     head size of value
create macro linear_flops(tokens, h_v, d_qk, d_v) as
    7 * tokens::double * h_v * d_qk * d_v
