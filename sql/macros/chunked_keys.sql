-- Keys of a sequence that at least one query sees under a causal mask in chunks.
--
-- n_q         query tokens of one sequence
-- n_kv        key tokens of it
-- chunk_size  tokens of a chunk
create macro chunked_keys(n_q, n_kv, chunk_size) as
    case
        when n_q <= 0 or n_kv <= 0
        then 0::double
        when chunk_size > 0
        then
            case
                when n_q < n_kv
                then n_kv::double - floor((n_kv - n_q)::double / chunk_size) * chunk_size
                when n_q >= n_kv
                then n_kv::double
            end
    end
