-- One row an attention call with its phase.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- call_no       BIGINT   -  the call
-- phase         VARCHAR  -  prefill, decode, mixed, train_fwd or train_bwd; NULL where unknown
-- phase_source  VARCHAR  -  load_source, query length, kernel name, direction or backward calls
with
    read as (
        select
            c.trace_id,
            c.call_no,
            c.direction,
            c.phase_hint,
            coalesce(c.packed, false) as packed,
            c.n_q,
            c.n_kv,
            starts_with(c.mask, 'causal') as is_causal,
            c.mask = 'dense' as is_dense,
            -- An encoder inside a step is in none of its phases.
            is_dense and not packed and c.n_q > 1 as is_apart,
            l.load_source,
            case
                when l.c_n > 0 and l.g_n > 0
                then 'mixed'
                when l.c_n > 0
                then 'prefill'
                when l.g_n > 0
                then 'decode'
            end as load_phase,
            count(case when c.direction = 'bwd' then 1 end) over (partition by c.trace_id)
            > 0 as trains
        from attention_calls as c
        left join attention_loads as l using (trace_id, call_no)
    ),

    found as (
        select
            trace_id,
            call_no,
            case
                when direction = 'bwd'
                then ['train_bwd', 'direction']
                when load_phase is not null and load_source <> 'cu_seqlens' and is_apart is not true
                then [load_phase, load_source]
                when trains
                then ['train_fwd', 'backward calls']
                when load_phase is not null and not is_dense
                then [load_phase, load_source]
                when n_q = 1 and not packed and coalesce(n_kv, 2) > 1
                then ['decode', 'query length']
                when phase_hint is not null
                then [phase_hint, 'kernel name']
                when n_q > 1 and is_causal and not packed and coalesce(n_kv, n_q) >= n_q
                then ['prefill', 'query length']
            end as way
        from read
    )

select trace_id, call_no, way[1] as phase, way[2] as phase_source
from found
