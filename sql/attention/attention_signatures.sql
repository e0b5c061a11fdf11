-- One row an attention call with what makes it like others: what it computes, and by which
-- kernels. Lengths of packed calls come from the load of each step and tell nothing apart, and
-- neither does the length of a cache that grows: both are one operation with work of its own at
-- each call.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id    VARCHAR  -   the trace
-- call_no     BIGINT   -   the call
-- shape_key   UBIGINT  -   equal where operator, shape, types, mask and phase are
-- kernel_key  UBIGINT  -   equal where the kernels are, too
-- start_ns    BIGINT   ns  first start
-- took_ns     BIGINT   ns  time in which kernels attend; where none does, busy time
-- pass_no     BIGINT   -   its pass
-- loop_no     BIGINT   -   visit of the layers
-- layer_no    BIGINT   -   its layer
with
    described as (
        select
            c.*,
            coalesce(c.packed, false) as is_packed,
            not is_packed and c.n_q = 1 and w.phase = 'decode' as may_grow,
            hash(
                c.direction,
                c.operator,
                c.family,
                c.implementation,
                c.library,
                w.phase,
                is_packed,
                c.latent,
                c.h_q,
                c.h_kv,
                c.d_qk,
                c.d_v,
                c.q_dtype,
                c.kv_dtype,
                c.o_dtype,
                c.mask,
                c.window_size,
                c.top_k,
                if(is_packed, null, [c.batch, c.n_q])
            ) as own_key
        from attention_calls as c
        join attention_work as w using (trace_id, call_no)
    ),

    lengths as (
        select trace_id, own_key, n_kv, count(*) as n_calls
        from described
        where may_grow
        group by all
    ),

    -- A length that comes back far more often than others is that of an encoder.
    growing as (
        select *, count(*) over same >= 4 and n_calls <= 2 * median(n_calls) over same as grows
        from lengths
        window same as (partition by trace_id, own_key)
    ),

    keyed as (
        select
            d.*,
            if(
                d.is_packed or coalesce(g.grows, false),
                d.own_key,
                hash(d.own_key, d.n_kv, d.bias_elements)
            ) as shape_key
        from described as d
        left join
            growing as g
            on d.may_grow
            and g.trace_id = d.trace_id
            and g.own_key = d.own_key
            and g.n_kv is not distinct from d.n_kv
    )

select
    trace_id,
    call_no,
    shape_key,
    hash(shape_key, list_sort(kernel_names)) as kernel_key,
    start_ns,
    if(core_ns > 0, core_ns, busy_ns) as took_ns,
    pass_no,
    loop_no,
    layer_no
from keyed
