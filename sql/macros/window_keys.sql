-- Keys of a sequence that at least one query of a causal sliding window sees, and that are read.
--
-- n_q          query tokens of one sequence
-- n_kv         key tokens of it
-- window_size  keys that a query sees at most, itself included
create macro window_keys(n_q, n_kv, window_size) as
    case
        when n_q <= 0 or n_kv <= 0 or window_size <= 0
        then 0::double
        when n_q + n_kv + window_size is not null
        then least(n_kv, least(n_q, n_kv) + window_size - 1)::double
    end
