-- Sum over the first n places of a sequence of the keys that a place sees in its own chunk.
--
-- n           places; below 1 is none
-- chunk_size  tokens of a chunk
create macro chunk_sum(n, chunk_size) as
    case
        when n <= 0
        then 0::double
        when chunk_size > 0
        then
            floor(n::double / chunk_size) * capped_sum(chunk_size, chunk_size)
            + capped_sum(n - floor(n::double / chunk_size) * chunk_size, chunk_size)
    end
