-- One row a call of attention that kernel names alone tell: graphs that are replayed, traces of
-- a device alone, operators that are not recorded. Its shape is what names and the config say.
-- grain: trace_id, lead_event_id
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- lead_event_id   BIGINT   -  its first kernel that attends, or writes the cache
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
with
    -- Kernels that write the cache name types that those that read it do not, or the reverse.
    paired as (
        select trace_id, role, mode(q_dtype) as q_dtype, mode(kv_dtype) as kv_dtype
        from attention_names
        where role in ('core', 'kv_write')
        group by trace_id, role
    ),

    launching as (select distinct trace_id from launches)

select
    s.trace_id,
    s.lead_event_id,
    coalesce(n.rule, 'attention kernel') as family,
    coalesce(n.direction, 'fwd') as direction,
    if(n.role = 'kv_write', 'cache', coalesce(n.implementation, 'standard')) as implementation,
    n.library,
    if(s.packed, 1, k.batch) as batch,
    null::double as n_q,
    null::double as n_kv,
    s.h_q,
    s.h_kv,
    s.d_qk,
    s.d_v,
    null::double as n_seqs,
    null::double as max_q,
    null::double as max_kv,
    coalesce(n.q_dtype, t.q_dtype, k.dtype) as q_dtype,
    coalesce(n.kv_dtype, t.kv_dtype, k.dtype) as kv_dtype,
    coalesce(n.o_dtype, t.q_dtype, k.dtype, n.q_dtype) as o_dtype,
    case
        when coalesce(n.q_dtype, t.q_dtype) is not null
        then 'kernel name'
        when k.dtype is not null
        then 'config'
    end as dtype_source,
    s.mask,
    case
        when s.mask = 'window'
        then coalesce(k.window_size, k.any_window)
        when s.mask = 'topk' and k.block_size > 1
        then k.window_size
    end as window_size,
    if(s.mask = 'topk', k.top_k, null) as top_k,
    s.mask_source,
    cast(0 as double) as bias_elements,
    null::varchar as bias_dtype,
    k.latent,
    s.packed,
    s.source as shape_source,
    case
        when n.implementation = 'linear'
        then 'shapes not recorded: profile without graphs and with record_shapes=True'
        when not s.packed and l.event_id is null and h.trace_id is not null
        then 'their operators ran before the trace begins: start recording before a step does'
        when not s.packed
        then 'shapes not recorded: profile the host too, with record_shapes=True'
        when o.problem is not null
        then o.problem
        when s.h_q is null or s.d_qk is null
        then
            'shapes not recorded: give --config config.json, or --capture, or profile without'
            || ' graphs and with record_shapes=True'
        when k.layered and s.mask = 'unknown'
        then 'layers see windows of different sizes, and the layer of this call is not known'
        when f.world_size > 1 and s.whole
        then
            'heads are those of the whole model, and the trace is of one of '
            || f.world_size
            || ' ranks'
    end as problem
from kernel_shapes as s
join kernel_leads as k using (trace_id, lead_event_id)
join attention_names as n on n.trace_id = k.trace_id and n.name = k.name
join raw_facts as f on f.trace_id = k.trace_id
left join
    paired as t
    on t.trace_id = k.trace_id
    and t.role = if(n.q_dtype is null and n.role = 'kv_write', 'core', 'kv_write')
left join foreign_configs as o on o.trace_id = k.trace_id
left join launches as l on l.trace_id = k.trace_id and l.event_id = k.lead_event_id
left join launching as h on h.trace_id = k.trace_id
