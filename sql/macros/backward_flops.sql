-- FLOPs of attention backward: five products, as every fused kernel computes the scores again:
-- query by key, gradient by value, and those that make the gradients of query, key and value.
-- With d_qk = d_v it is 2.5 times the forward.
--
-- h_q    query heads
-- pairs  pairs of query and key of a head, over the batch
-- d_qk   head size of query and key
-- d_v    head size of value
create macro backward_flops(h_q, pairs, d_qk, d_v) as
    2 * h_q::double * pairs * (3 * d_qk + 2 * d_v)
