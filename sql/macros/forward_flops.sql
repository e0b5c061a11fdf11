-- FLOPs of attention forward: two products, query by key and weight by value, a multiply-add
-- being two. Softmax, masks, dropout, soft caps and rotary embeddings do not count.
--
-- h_q    query heads
-- pairs  pairs of query and key of a head, over the batch
-- d_qk   head size of query and key
-- d_v    head size of value
create macro forward_flops(h_q, pairs, d_qk, d_v) as
    2 * h_q::double * pairs * (d_qk + d_v)
