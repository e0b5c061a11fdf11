-- The number, or NULL where it is infinite or none: shapes of a damaged file can be anything.
--
-- x  a number
create macro finite(x) as
    if(isfinite(x::double), x::double, null)
