-- One row a distinct name of a kernel that takes part in attention, by the rules of
-- profiles/attention/kernels.toml, else by its category; with what the name tells.
-- grain: trace_id, name
-- keep: store
--
-- trace_id        VARCHAR  -  the trace
-- name            VARCHAR  -  name as the profiler wrote it
-- role            VARCHAR  -  core, combine, step, kv_write, plan, quantize, indexer or softmax
-- implementation  VARCHAR  -  flash, paged or linear
-- library         VARCHAR  -  whose kernel it is
-- direction       VARCHAR  -  fwd or bwd
-- phase           VARCHAR  -  prefill or decode
-- mask            VARCHAR  -  causal, window or dense
-- head_dim        BIGINT   -  head size of query and key, as the kernel rounds it up
-- head_dim_v      BIGINT   -  head size of value, alike
-- page_size       BIGINT   -  tokens of a page of the cache
-- q_dtype         VARCHAR  -  type that it computes in
-- kv_dtype        VARCHAR  -  type of the cache
-- o_dtype         VARCHAR  -  type of the output
-- rule            VARCHAR  -  the rule; NULL where only the category tells
select
    trace_id,
    name,
    role,
    implementation,
    library,
    direction,
    phase,
    case
        when
            lower(words['window'])
            in ('true', '1', '(bool)1', 'slidingorchunked', 'sliding_or_chunked')
        then 'window'
        when lower(words['causal']) in ('true', '1', '(bool)1', 'causal')
        then 'causal'
        when lower(words['causal']) in ('false', '0', '(bool)0')
        then 'dense'
        else mask
    end as mask,
    try_cast(words['head_dim'] as bigint) as head_dim,
    coalesce(try_cast(words['head_dim_v'] as bigint), head_dim) as head_dim_v,
    try_cast(words['page_size'] as bigint) as page_size,
    kernel_dtype(words['q_type']) as q_dtype,
    case
        words['fp8']
        when '1'
        then 'fp8_e4m3'
        when '2'
        then 'fp8_e5m2'
        else coalesce(kernel_dtype(words['kv_type']), if(role = 'core', q_dtype, null))
    end as kv_dtype,
    kernel_dtype(words['o_type']) as o_dtype,
    rule
from attention_words
where role <> 'none'
