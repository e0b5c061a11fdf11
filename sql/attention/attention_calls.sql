-- One row a call of attention, forward or backward: what it computes and how long it took.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id           VARCHAR    -   the trace
-- call_no            BIGINT     -   0-based, in order of start
-- operator_event_id  BIGINT     -   its operator, in the host trace; NULL without one
-- lead_event_id      BIGINT     -   its first activity that attends; NULL where none does
-- host_trace_id      VARCHAR    -   the trace that holds the operator
-- operator           VARCHAR    -   name of the operator
-- evidence           VARCHAR    -   operator, capture, unfused, or kernels: their names alone
-- input_dims         VARCHAR    -   recorded input shapes as JSON text
-- input_types        VARCHAR    -   recorded input types as JSON text
-- concrete_inputs    VARCHAR    -   recorded scalar arguments as JSON text
-- pass_no            BIGINT     -   its pass
-- loop_no            BIGINT     -   visit of the layers
-- layer_no           BIGINT     -   its layer
-- region             VARCHAR    -   prologue, layer, epilogue or outside; NULL when unknown
-- start_ns           BIGINT     ns  first start
-- end_ns             BIGINT     ns  last end
-- busy_ns            BIGINT     ns  union of the intervals of its activities
-- core_ns            BIGINT     ns  the part in which kernels attend; unfused: all
-- sum_dur_ns         BIGINT     ns  sum of durations
-- n_activities       BIGINT     -   activities
-- kernel_names       VARCHAR[]  -   readable names of the kernels that attend, longest first
-- phase_hint         VARCHAR    -   prefill or decode, where a kernel name tells
-- family             VARCHAR    -   the rule that knows it
-- direction          VARCHAR    -   fwd or bwd
-- implementation     VARCHAR    -   flash, paged, standard, unfused, linear or cache (writes it)
-- library            VARCHAR    -   whose kernels they are, as far as names tell
-- batch              DOUBLE     -   batch
-- n_q                DOUBLE     -   query tokens of a sequence; of all where packed
-- n_kv               DOUBLE     -   key tokens; NULL where only the load of the step tells
-- h_q                DOUBLE     -   query heads
-- h_kv               DOUBLE     -   key and value heads in memory
-- d_qk               DOUBLE     -   head size of query and key
-- d_v                DOUBLE     -   head size of value
-- ctx_d_qk           DOUBLE     -   head size of expanded keys that only prefill has, as in MLA
-- ctx_d_v            DOUBLE     -   head size of their values
-- n_seqs             DOUBLE     -   sequences of packed lengths
-- max_q              DOUBLE     -   longest query length told
-- max_kv             DOUBLE     -   longest key length told
-- q_dtype            VARCHAR    -   bf16, fp16, fp32, fp8_e4m3, ...
-- kv_dtype           VARCHAR    -   of key and value, or of their cache
-- o_dtype            VARCHAR    -   of the output
-- dtype_source       VARCHAR    -   where the types are from
-- mask               VARCHAR    -   dense, causal_tl, causal_br, window, chunked, topk, ...
-- window_size        DOUBLE     -   keys that a query of a window sees, itself included
-- top_k              DOUBLE     -   keys that a query of sparse attention sees
-- mask_source        VARCHAR    -   argument, kernel name, config, profile, family or assumed
-- bias_elements      DOUBLE     -   elements of a bias or mask that are read; 0 without one
-- bias_dtype         VARCHAR    -   its type
-- latent             BOOLEAN    -   key and value are one compressed tensor, as in MLA
-- packed             BOOLEAN    -   tokens of several requests stand in one dimension
-- shape_source       VARCHAR    -   operator, capture, kernel name, config, profile; NULL: no shape
-- problem            VARCHAR    -   what is not known, and what would tell
{% set sizes = "h_q h_kv d_qk d_v ctx_d_qk ctx_d_v latent shape_source problem" %}
{% set others = "q_dtype kv_dtype o_dtype dtype_source window_size top_k" %}
with
    known as (
        select 'operator' as way, operator_event_id as key_event_id, *
        from operator_calls
        union all by name
        select 'unfused' as way, lead_event_id as key_event_id, * exclude (lead_event_id)
        from unfused_calls
        union all by name
        select 'kernels' as way, lead_event_id as key_event_id, * exclude (lead_event_id)
        from kernel_calls
    )

select
    k.trace_id,
    t.call_no,
    k.operator_event_id,
    t.lead_event_id,
    coalesce(k.host_trace_id, k.trace_id) as host_trace_id,
    k.operator,
    if(k.host_trace_id <> k.trace_id, 'capture', k.way) as evidence,
    k.input_dims,
    k.input_types,
    k.concrete_inputs,
    t.pass_no,
    t.loop_no,
    t.layer_no,
    t.region,
    t.start_ns,
    t.end_ns,
    t.busy_ns,
    if(k.implementation = 'unfused', t.busy_ns, t.core_ns) as core_ns,
    t.sum_dur_ns,
    t.n_activities,
    t.kernel_names,
    t.phase_hint,
    k.* exclude (
        trace_id,
        way,
        key_event_id,
        operator_event_id,
        host_trace_id,
        operator,
        input_dims,
        input_types,
        input_strides,
        concrete_inputs
    ) replace (
        -- What recorded arguments do not tell of an engine's operator, its config does.
        {% for key in sizes.split() %}
            if(c.fills, c.{{ key }}, k.{{ key }}) as {{ key }},
        {% endfor %}
        {% for key in others.split() %}
            coalesce(k.{{ key }}, c.{{ key }}) as {{ key }},
        {% endfor %}
        k.packed or coalesce(c.fills, false) as packed,
        coalesce(c.mask, k.mask) as mask,
        coalesce(c.mask_source, k.mask_source) as mask_source
    )
from call_times as t
join known as k using (trace_id, way, key_event_id)
left join call_geometry as c on c.trace_id = t.trace_id and c.call_no = t.call_no
