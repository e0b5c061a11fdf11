-- One row an operation of attention with the shape of its calls. Lengths that differ among them
-- are means; of packed calls they are sums over the requests of a step.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id        VARCHAR  -  the trace
-- op_no           BIGINT   -  the operation
-- family          VARCHAR  -  the rule that knows it
-- direction       VARCHAR  -  fwd or bwd
-- implementation  VARCHAR  -  flash, paged, standard, unfused, linear or cache
-- library         VARCHAR  -  whose kernels they are, as far as names tell
-- batch           DOUBLE   -  batch
-- n_q             DOUBLE   -  query tokens
-- n_kv            DOUBLE   -  key tokens; NULL where nothing tells
-- h_q             DOUBLE   -  query heads
-- h_kv            DOUBLE   -  key and value heads
-- d_qk            DOUBLE   -  head size of query and key
-- d_v             DOUBLE   -  head size of value
-- n_seqs          DOUBLE   -  sequences of packed lengths
-- max_q           DOUBLE   -  longest query length told
-- max_kv          DOUBLE   -  longest key length told
-- q_dtype         VARCHAR  -  type of the query
-- kv_dtype        VARCHAR  -  type of key and value, or of their cache
-- o_dtype         VARCHAR  -  type of the output
-- dtype_source    VARCHAR  -  where the types are from
-- mask            VARCHAR  -  dense, causal_br, window, ...
-- window_size     DOUBLE   -  keys that a query of a window sees
-- top_k           DOUBLE   -  keys that a query of sparse attention sees
-- mask_source     VARCHAR  -  what tells the mask
-- bias_elements   DOUBLE   -  elements of a bias or mask that are read
-- bias_dtype      VARCHAR  -  its type
-- latent          BOOLEAN  -  key and value are one compressed tensor
-- packed          BOOLEAN  -  tokens of several requests stand in one dimension
-- shape_source    VARCHAR  -  where the shape is from; NULL: no shape
select
    p.trace_id,
    p.op_no,
    any_value(c.family) as family,
    any_value(c.direction) as direction,
    any_value(c.implementation) as implementation,
    any_value(c.library) as library,
    avg(c.batch) as batch,
    avg(coalesce(c.n_q, if(c.packed, l.c_sq + l.g_sq, null))) as n_q,
    avg(if(c.packed, coalesce(l.c_sk + l.g_sk, c.n_kv), c.n_kv)) as n_kv,
    any_value(c.h_q) as h_q,
    any_value(c.h_kv) as h_kv,
    any_value(c.d_qk) as d_qk,
    any_value(c.d_v) as d_v,
    avg(c.n_seqs) as n_seqs,
    max(c.max_q) as max_q,
    max(c.max_kv) as max_kv,
    any_value(c.q_dtype) as q_dtype,
    any_value(c.kv_dtype) as kv_dtype,
    any_value(c.o_dtype) as o_dtype,
    any_value(c.dtype_source) as dtype_source,
    any_value(c.mask) as mask,
    any_value(c.window_size) as window_size,
    any_value(c.top_k) as top_k,
    any_value(c.mask_source) as mask_source,
    avg(c.bias_elements) as bias_elements,
    any_value(c.bias_dtype) as bias_dtype,
    any_value(c.latent) as latent,
    any_value(c.packed) as packed,
    any_value(c.shape_source) as shape_source
from attention_populations as p
join attention_calls as c using (trace_id, call_no)
left join attention_loads as l using (trace_id, call_no)
group by p.trace_id, p.op_no
