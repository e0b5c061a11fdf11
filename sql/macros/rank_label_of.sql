-- The label that a merged file puts before the processes of a rank, as in [TP01-EP01] 4243; NULL
-- in other files. Ranks reuse ids, so whatever is linked by one is linked inside a rank.
--
-- process  pid of an event as text
create macro rank_label_of(process) as
    if(starts_with(process, '['), regexp_extract(process, '^\[[^\]]+\]'), null)
