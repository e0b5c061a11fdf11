-- One row a call of attention without a fused kernel: a product of queries and keys, a softmax over
-- the keys, a product with values, one behind the other on a thread. Shapes must fit each other.
-- grain: trace_id, lead_event_id
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace of its activities
-- host_trace_id   VARCHAR  -  the trace that holds its operators
-- lead_event_id   BIGINT   -  its first activity
-- operator        VARCHAR  -  the operators
-- family          VARCHAR  -  the rule that knows it
-- direction       VARCHAR  -  fwd or bwd
-- implementation  VARCHAR  -  flash, paged, standard, unfused, linear, cache
-- library         VARCHAR  -  whose kernels they are, as far as names tell
-- batch           DOUBLE   -  batch
-- n_q             DOUBLE   -  query tokens of a sequence; of all where packed
-- n_kv            DOUBLE   -  key tokens; NULL where only the load of the step tells
-- h_q             DOUBLE   -  query heads
-- h_kv            DOUBLE   -  key and value heads in memory
-- d_qk            DOUBLE   -  head size of query and key
-- d_v             DOUBLE   -  head size of value
-- n_seqs          DOUBLE   -  sequences of packed lengths
-- max_q           DOUBLE   -  longest query length told
-- max_kv          DOUBLE   -  longest key length told
-- q_dtype         VARCHAR  -  bf16, fp16, fp32, fp8_e4m3, ...
-- kv_dtype        VARCHAR  -  of key and value, or of their cache
-- o_dtype         VARCHAR  -  of the output
-- dtype_source    VARCHAR  -  where the types are from
-- mask            VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk, ...
-- window_size     DOUBLE   -  keys that a query of a window sees, itself included
-- top_k           DOUBLE   -  keys that a query of sparse attention sees
-- mask_source     VARCHAR  -  argument, kernel name, config, profile, family or assumed
-- bias_elements   DOUBLE   -  elements of a bias or mask that are read; 0 without one
-- bias_dtype      VARCHAR  -  its type
-- latent          BOOLEAN  -  key and value are one compressed tensor, as in MLA
-- packed          BOOLEAN  -  tokens of several requests stand in one dimension
-- shape_source    VARCHAR  -  operator, capture, kernel name, config, profile; NULL: no shape
-- problem         VARCHAR  -  what is not known, and what would tell
select
    a.trace_id,
    coalesce(a.host_trace_id, a.trace_id) as host_trace_id,
    a.lead_event_id,
    c.operators as operator,
    'unfused' as family,
    coalesce(c.direction, if(regexp_matches(e.name, '(?i)backward'), 'bwd', 'fwd')) as direction,
    'unfused' as implementation,
    'PyTorch' as library,
    s.batch,
    s.n_q,
    c.n_kv,
    s.h_q,
    s.h_kv,
    c.d_qk,
    c.d_v,
    null::double as n_seqs,
    null::double as max_q,
    null::double as max_kv,
    if(c.dtype = 'fp32' and a.in_tf32, 'tf32', c.dtype) as q_dtype,
    q_dtype as kv_dtype,
    c.dtype as o_dtype,
    case
        when q_dtype = 'tf32' then 'kernel name' when c.dtype is not null then 'operator'
    end as dtype_source,
    -- What is computed, whatever a mask takes away in between.
    if(c.causal, 'causal_tl', 'dense') as mask,
    null::double as window_size,
    null::double as top_k,
    'family' as mask_source,
    coalesce(b.bias_elements, 0) as bias_elements,
    b.bias_dtype,
    false as latent,
    false as packed,
    case
        when s.n_q is null then null when a.trace_id = c.trace_id then 'operator' else 'capture'
    end as shape_source,
    if(s.n_q is null, 'no shapes recorded: profile with record_shapes=True', null) as problem
from
    (
        select
            u.trace_id,
            u.host_trace_id,
            u.softmax_event_id,
            u.lead_event_id,
            bool_or(regexp_matches(v.name, 'tf32|s1688gemm')) as in_tf32
        from unfused_activities as u
        join activities as v using (trace_id, event_id)
        group by all
    ) as a
left join unfused_spans as c on c.trace_id = a.host_trace_id and c.event_id = a.softmax_event_id
left join unfused_shapes as s on s.trace_id = c.trace_id and s.event_id = c.event_id
left join unfused_biases as b on b.trace_id = c.trace_id and b.event_id = c.event_id
left join
    events as e
    on a.host_trace_id is null
    and e.trace_id = a.trace_id
    and e.event_id = a.softmax_event_id
