-- One row an operator that is a call of attention and whose kernels ran.
-- grain: trace_id, operator_event_id
-- keep: yes
--
-- trace_id           VARCHAR  -  the trace of its activities
-- host_trace_id      VARCHAR  -  the trace that holds it
-- operator_event_id  BIGINT   -  the operator
-- operator           VARCHAR  -  its name
-- input_dims         VARCHAR  -  recorded shapes as JSON text
-- input_types        VARCHAR  -  recorded types as JSON text
-- input_strides      VARCHAR  -  recorded strides as JSON text
-- concrete_inputs    VARCHAR  -  recorded scalars as JSON text
-- family             VARCHAR  -  the rule that knows it
-- direction          VARCHAR  -  fwd or bwd
-- implementation     VARCHAR  -  flash, paged, standard, unfused, linear, or cache: only writes
-- library            VARCHAR  -  whose kernels they are, as far as names tell
-- batch              DOUBLE   -  batch
-- n_q                DOUBLE   -  query tokens of a sequence; of all where packed
-- n_kv               DOUBLE   -  key tokens; NULL where only the load of the step tells
-- h_q                DOUBLE   -  query heads
-- h_kv               DOUBLE   -  key and value heads in memory
-- d_qk               DOUBLE   -  head size of query and key
-- d_v                DOUBLE   -  head size of value
-- ctx_d_qk           DOUBLE   -  head size of expanded keys where only prefill has them
-- ctx_d_v            DOUBLE   -  head size of their values
-- n_seqs             DOUBLE   -  sequences of packed lengths
-- max_q              DOUBLE   -  longest query length told
-- max_kv             DOUBLE   -  longest key length told
-- q_dtype            VARCHAR  -  bf16, fp16, fp32, fp8_e4m3, ...
-- kv_dtype           VARCHAR  -  of key and value, or of their cache
-- o_dtype            VARCHAR  -  of the output
-- dtype_source       VARCHAR  -  where the types are from
-- mask               VARCHAR  -  dense, causal_tl, causal_br, window, chunked, topk, ...
-- window_size        DOUBLE   -  keys that a query of a window sees, itself included
-- top_k              DOUBLE   -  keys that a query of sparse attention sees
-- mask_source        VARCHAR  -  argument, kernel name, config, profile, family or assumed
-- bias_elements      DOUBLE   -  elements of a bias or mask that are read; 0 without one
-- bias_dtype         VARCHAR  -  its type
-- latent             BOOLEAN  -  key and value are one compressed tensor, as in MLA
-- packed             BOOLEAN  -  tokens of several requests stand in one dimension
-- shape_source       VARCHAR  -  operator, capture, kernel name, config, profile; NULL: no shape
-- problem            VARCHAR  -  what is not known, and what would tell
select
    z.trace_id,
    z.host_trace_id,
    z.operator_event_id,
    t.operator,
    t.input_dims,
    t.input_types,
    t.input_strides,
    t.concrete_inputs,
    f.family,
    f.direction,
    case
        when f.implementation = 'flash' and s.in_pool
        then 'paged'
        when f.implementation = 'standard' and not k.has_core and k.has_gemms
        then 'unfused'
        when f.implementation = 'standard' or f.needs is not null
        then coalesce(k.ran, f.implementation)
        else f.implementation
    end as implementation,
    if(f.library = 'AITER', f.library, coalesce(k.ran_library, f.library)) as library,
    z.batch,
    z.n_q,
    s.n_kv,
    z.h_q,
    z.h_kv,
    z.d_qk,
    z.d_v,
    z.ctx_d_qk,
    z.ctx_d_v,
    s.n_seqs,
    s.max_q,
    s.max_kv,
    coalesce(k.ran_q, s.q_dtype) as q_dtype,
    z.kv_dtype,
    coalesce(k.ran_o, s.o_dtype, k.ran_q) as o_dtype,
    case
        when coalesce(k.ran_q, k.ran_kv, k.cache_dtype) is not null
        then 'kernel name'
        when s.q_dtype is not null
        then 'operator'
    end as dtype_source,
    z.mask,
    s.window_size,
    s.top_k,
    z.mask_source,
    s.bias_elements,
    s.bias_dtype,
    z.latent,
    s.packed,
    case
        when z.h_q is not null then if(z.host_trace_id = z.trace_id, 'operator', 'capture')
    end as shape_source,
    case
        when z.h_q is not null
        then null
        when t.input_dims is null
        then
            'no shapes recorded: profile with record_shapes=True'
            || if(f.implementation = 'paged', ', or give --config config.json', '')
        when f.layout = 'TND' and json_array_length(t.input_dims, '$[' || f.q || ']') = 2
        then 'the recorded shapes do not tell heads apart: give --config config.json'
        when f.layout = 'ANY'
        then 'the recorded shapes do not tell which tensor is query, key or value'
        when f.q is null
        then 'what ' || t.operator || ' takes is not known: give --config config.json'
        else 'the recorded shapes are not those of ' || t.operator
    end as problem
from operator_sizes as z
join operator_kernels as k using (trace_id, host_trace_id, operator_event_id)
join operator_texts as t on t.trace_id = z.host_trace_id and t.event_id = z.operator_event_id
join operator_families as f on f.trace_id = t.trace_id and f.name = t.name
join operator_shapes as s on s.trace_id = t.trace_id and s.event_id = t.event_id
