-- Keys that a query attends to where far keys are compressed: those of a window as they are, and
-- of the blocks of ratio keys, of which each is one, all or the top_k that an indexer chose.
--
-- n_kv         key tokens of the sequence
-- window_size  keys of the window
-- ratio        keys that are compressed to one
-- top_k        most blocks; NULL: all
create macro compressed_keys(n_kv, window_size, ratio, top_k) as
    if(n_kv < window_size, n_kv, window_size)::double
    + if(ceil(n_kv::double / ratio) > top_k, top_k, ceil(n_kv::double / ratio))
