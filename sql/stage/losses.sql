-- One row a place of the file that could not be read as it stands, in file order. What is repaired
-- was kept: bytes that are not UTF-8 became U+FFFD, words that are no JSON null, the rest is as
-- meant.
-- grain: trace_id, loss_no
--
-- trace_id     VARCHAR  -      the trace
-- loss_no      BIGINT   -      0-based number within the trace
-- kind         VARCHAR  -      what was wrong; sql/README lists the kinds
-- repaired     BOOLEAN  -      kept after a repair; false: lost
-- event_id     BIGINT   -      the event it became, or the next one; NULL outside of the event list
-- byte_offset  BIGINT   -      where it begins in the unpacked text, 0-based
-- line         BIGINT   -      the line of that, 1-based
-- n_bytes      BIGINT   bytes  its length; 0 where something is missing
-- detail       VARCHAR  -      how its text begins, or what is missing
select trace_id, loss_no, kind, repaired, event_id, byte_offset, line, n_bytes, detail
from raw_losses
