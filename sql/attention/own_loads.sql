-- One row an attention call whose own arguments tell how many sequences share its tokens, with
-- the sums that follow. One token a sequence is generation, of which all sums are known.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- call_no   BIGINT   -  the call
-- c_n       DOUBLE   -  prefill requests
-- c_sq      DOUBLE   -  sum of their query tokens
-- c_sk      DOUBLE   -  sum of their key tokens; NULL where not told
-- c_sqsq    DOUBLE   -  sum of squares of query tokens; NULL where not told
-- c_sqsk    DOUBLE   -  sum of query tokens times key tokens; NULL where not told
-- g_n       DOUBLE   -  generation requests
-- g_sq      DOUBLE   -  as c_sq
-- g_sk      DOUBLE   -  as c_sk
-- g_sqsq    DOUBLE   -  as c_sqsq
-- g_sqsk    DOUBLE   -  as c_sqsk
-- exact     BOOLEAN  -  whether all of it is known
-- note      VARCHAR  -  what is not
with
    told as (
        select
            trace_id,
            call_no,
            n_seqs as n,
            n_q as sq,
            -- Of one sequence whose queries are all there, the longest key length is the length.
            coalesce(n_kv, if(n_seqs = 1 and max_q = n_q, max_kv, null)) as sk,
            n_q = n_seqs and coalesce(max_q, 1) = 1 and direction = 'fwd' as generates
        from attention_calls
        where packed and n_seqs > 0 and n_q > 0
    )

select
    trace_id,
    call_no,
    if(generates, 0, n) as c_n,
    if(generates, 0, sq) as c_sq,
    if(generates, 0, sk) as c_sk,
    case when generates then 0 when n = 1 then sq * sq end as c_sqsq,
    case when generates then 0 when n = 1 then sq * sk end as c_sqsk,
    if(generates, n, 0) as g_n,
    if(generates, sq, 0) as g_sq,
    if(generates, sk, 0) as g_sk,
    if(generates, sq, 0) as g_sqsq,
    if(generates, sk, 0) as g_sqsk,
    (generates or n = 1) and sk is not null as exact,
    if(exact, null, 'likeliest lengths, as those of single sequences are not recorded') as note
from told
