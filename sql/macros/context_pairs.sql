-- Pairs of query and key of many sequences under a causal mask aligned bottom-right, from sums
-- over them: each has q * k pairs less q * (q - 1) / 2. Exact where no sequence has fewer keys
-- than queries, as in serving, for prefill, chunks of it, and decode of any number of tokens.
--
-- c_sq    sum of query tokens
-- c_sqsq  sum of their squares
-- c_sqsk  sum of query tokens times key tokens
create macro context_pairs(c_sq, c_sqsq, c_sqsk) as
    c_sqsk::double - c_sqsq::double / 2 + c_sq::double / 2
