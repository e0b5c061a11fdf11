-- One row a kernel that leads a call which kernel names alone tell, with what its name, its launch
-- grid and the config say; the config of its layer, or of all layers where they are alike.
-- grain: trace_id, lead_event_id
-- keep: yes
--
-- trace_id        VARCHAR  -  the trace
-- lead_event_id   BIGINT   -  the kernel that attends, or writes the cache
-- name            VARCHAR  -  its name
-- role            VARCHAR  -  core or kv_write
-- implementation  VARCHAR  -  flash, paged or linear
-- head_dim        BIGINT   -  head size of query and key that the name tells
-- head_dim_v      BIGINT   -  head size of value that the name tells
-- group_size      DOUBLE   -  query heads a key head that the name tells
-- grid_h_q        DOUBLE   -  query heads that the grid tells
-- grid_h_kv       DOUBLE   -  key and value heads that the grid tells
-- batch           DOUBLE   -  sequences that the grid tells
-- h_q             DOUBLE   -  query heads of the config
-- h_kv            DOUBLE   -  key and value heads of the config
-- d_qk            DOUBLE   -  head size of query and key of the config
-- d_v             DOUBLE   -  head size of value of the config
-- wide_d_qk       DOUBLE   -  head size of query and key of the config where it is expanded
-- wide_d_v        DOUBLE   -  head size of value of the config, alike
-- window_size     DOUBLE   -  keys of a window of its layer; NULL: all
-- any_window      DOUBLE   -  keys of the one window that layers have
-- layered         BOOLEAN  -  layers see windows of different sizes, and the layer is not known
-- top_k           DOUBLE   -  keys that sparse attention chooses
-- block_size      DOUBLE   -  keys that its layer compresses into one; 0: none
-- dtype           VARCHAR  -  type of activations of the config
-- expands         BOOLEAN  -  the config compresses key and value, this kernel has them expanded
-- latent          BOOLEAN  -  key and value are one compressed tensor
with
    leads as (
        select
            c.trace_id,
            c.event_id as lead_event_id,
            l.layer_no,
            w.name,
            w.role,
            w.implementation,
            w.phase,
            w.latent,
            try_cast(w.words['group'] as double) as group_size,
            try_cast(json_extract(e.args, '$.grid') as double[]) as grid,
            nullif(grid[w.q_heads_at], 0) as grid_h_q,
            nullif(grid[w.kv_heads_at], 0) as grid_h_kv,
            if(w.implementation = 'flash', nullif(grid[w.seqs_at], 0), null) as batch,
            n.head_dim,
            n.head_dim_v
        from kernel_call_activities as c
        join events as e using (trace_id, event_id)
        join attention_words as w on w.trace_id = e.trace_id and w.name = e.name
        join attention_names as n on n.trace_id = e.trace_id and n.name = e.name
        left join activity_layers as l on l.trace_id = c.trace_id and l.event_id = c.event_id
        where c.event_id = c.lead_event_id
    )

select
    k.trace_id,
    k.lead_event_id,
    k.name,
    k.role,
    k.implementation,
    k.head_dim,
    k.head_dim_v,
    k.group_size,
    k.grid_h_q,
    k.grid_h_kv,
    k.batch,
    coalesce(g.h_q, a.h_q) as h_q,
    coalesce(g.h_kv, a.h_kv) as h_kv,
    coalesce(g.d_qk, a.d_qk) as d_qk,
    coalesce(g.d_v, a.d_v) as d_v,
    coalesce(g.wide_d_qk, a.wide_d_qk) as wide_d_qk,
    coalesce(g.wide_d_v, a.wide_d_v) as wide_d_v,
    if(g.trace_id is null, a.window_size, g.window_size) as window_size,
    a.any_window,
    coalesce(g.trace_id is null and a.layered, false) as layered,
    if(g.trace_id is null, a.top_k, g.top_k) as top_k,
    if(g.trace_id is null, a.block_size, g.block_size) as block_size,
    a.dtype,
    -- Of a config with compressed keys, kernels of prefill may have them expanded.
    coalesce(g.latent, a.latent, false)
    and k.latent is null
    and coalesce(g.block_size, a.block_size) is null
    and not coalesce(
        if(k.head_dim is null, k.phase = 'decode', k.head_dim = coalesce(g.d_qk, a.d_qk)), false
    ) as expands,
    coalesce(k.latent, coalesce(g.latent, a.latent, false) and not expands) as latent
from leads as k
left join layer_geometry as g on g.trace_id = k.trace_id and g.layer_no = k.layer_no
left join model_geometry as a on a.trace_id = k.trace_id
