-- Sum of min(k, cap) over k = 1 ... n: what n queries in a row see, the first of which sees one
-- key, each further one more, and none more than cap.
--
-- n    how many; below 1 is none
-- cap  most keys that one sees
create macro capped_sum(n, cap) as
    case
        when n <= 0
        then 0::double
        when n <= cap
        then n::double * (n::double + 1) / 2
        when n > cap
        then cap::double * (cap::double + 1) / 2 + (n::double - cap::double) * cap::double
    end
