-- FLOPs of attention backward where the weights of the forward were stored: four products, for
-- the gradients of value, of the weights, of query and of key. So works unfused attention.
--
-- h_q    query heads
-- pairs  pairs of query and key of a head, over the batch
-- d_qk   head size of query and key
-- d_v    head size of value
create macro stored_backward_flops(h_q, pairs, d_qk, d_v) as
    4 * h_q::double * pairs * (d_qk + d_v)
