-- One row a trace of whose file something was lost: what is shown of it is only a part.
-- grain: trace_id
--
-- trace_id  VARCHAR  -  the trace
-- warning   VARCHAR  -  one sentence
select
    trace_id,
    concat(
        case
            when count(*) = 1
            then 'one place of the file could not be read'
            else concat(count(*), ' places of the file could not be read, the first')
        end,
        printf(' at byte %d, line %d (', min_by(byte_offset, loss_no), min_by(line, loss_no)),
        min_by(case when n_bytes = 0 or kind = 'truncated' then detail else kind end, loss_no),
        '): counts, totals and idle time are of the rest; the view losses has each'
    ) as warning
from losses
where not repaired
group by trace_id
