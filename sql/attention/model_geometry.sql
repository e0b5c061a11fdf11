-- One row a trace with a config: what the attention of all its layers has in common.
-- grain: trace_id
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- h_q          DOUBLE   -  query heads; NULL where layers differ, as every size here
-- h_kv         DOUBLE   -  key and value heads
-- d_qk         DOUBLE   -  head size of query and key
-- d_v          DOUBLE   -  head size of value
-- wide_d_qk    DOUBLE   -  head size of query and key where compressed keys are expanded
-- wide_d_v     DOUBLE   -  head size of value, alike
-- any_window   DOUBLE   -  keys of the window that layers have which have one
-- window_size  DOUBLE   -  the same where every layer has one
-- layered      BOOLEAN  -  layers differ in their window, or in how they compress keys
-- top_k        DOUBLE   -  keys that sparse attention chooses
-- block_size   DOUBLE   -  keys that are compressed into one; 0: none
-- latent       BOOLEAN  -  key and value are one compressed tensor
-- dtype        VARCHAR  -  type of activations
select
    trace_id,
    {% for size in ["h_q", "h_kv", "d_qk", "d_v", "wide_d_qk", "wide_d_v"] %}
        if(count(distinct {{ size }}) = 1, any_value({{ size }}), null) as {{ size }},
    {% endfor %}
    if(count(distinct window_size) = 1, any_value(window_size), null) as any_window,
    if(count(window_size) = count(*), any_window, null) as window_size,
    any_window is null
    and count(window_size) > 0
    or count(window_size) not in (0, count(*))
    or count(distinct block_size) > 1 as layered,
    {% for size in ["top_k", "block_size"] %}
        if(
            count(distinct {{ size }}) = 1 and count({{ size }}) = count(*),
            any_value({{ size }}),
            null
        ) as {{ size }},
    {% endfor %}
    bool_and(latent) as latent,
    any_value(dtype) as dtype
from layer_geometry
group by trace_id
