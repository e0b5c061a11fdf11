-- One row an operation of a pair of traces, with what makes it comparable to one of the other:
-- keys, from the same layers down to the same heads of queries and any mask. The first key that
-- both traces have counts. Operators, kernels, libraries, types and GPUs may differ: they are
-- what is compared.
-- grain: trace_id, other_trace_id, side_no, op_no
-- keep: session
--
-- trace_id        VARCHAR    -    trace 1
-- other_trace_id  VARCHAR    -    trace 2
-- side_no         INTEGER    -    1 or 2: whose operation it is
-- op_no           BIGINT     -    the operation
-- by_load         BOOLEAN    -    lengths differ from call to call, so that work is compared
-- is_loose        BOOLEAN    -    a tensor says what is masked, so that nothing else tells it
-- keys            UBIGINT[]  -    equal where operations are of one scope, the nearest first
with
    both_sides as (
        select p.trace_id, p.other_trace_id, 1 as side_no, o.* exclude (trace_id)
        from trace_pairs as p
        join attention_ops as o on o.trace_id = p.trace_id
        union all by name
        select p.trace_id, p.other_trace_id, 2 as side_no, o.* exclude (trace_id)
        from trace_pairs as p
        join attention_ops as o on o.trace_id = p.other_trace_id
    ),

    scoped as (
        select
            *,
            coalesce(packed, false) as is_packed,
            is_packed or n_q = 1 as by_load,
            h_q is not null and d_qk is not null and (is_packed or n_q is not null) as is_known,
            regexp_extract(layer_class, '^[a-z]+') as class,
            if(starts_with(mask, 'causal') and n_q = n_kv, 'causal', mask) as mask_class,
            implementation = 'unfused' or coalesce(bias_elements > 0, false) as is_loose,
            case
                when not is_known
                then hash(operator, kernel_names, direction)
                else
                    hash(
                        direction,
                        implementation = 'cache',
                        implementation = 'linear',
                        is_packed,
                        if(is_packed, phase, null),
                        if(is_packed, null, batch),
                        if(is_packed, null, n_q),
                        if(by_load, null, n_kv),
                        h_q,
                        d_qk,
                        d_v,
                        latent,
                        window_size,
                        top_k
                    )
            end as scope_key
        from both_sides
    ),

    -- Letters tell apart what nothing else does: they mean the same where both have as many.
    lettered as (
        select
            *,
            hash(scope_key, h_kv, mask_class, class) as class_key,
            count(distinct layer_class) over (
                partition by trace_id, other_trace_id, side_no, class_key
            ) as n_letters
        from scoped
    )

select
    trace_id,
    other_trace_id,
    side_no,
    op_no,
    coalesce(by_load, false) as by_load,
    coalesce(is_loose, false) as is_loose,
    [
        hash(class_key, n_letters, layer_class, n_kv, layers),
        hash(class_key, n_letters, layer_class, n_kv),
        hash(class_key, n_kv),
        class_key,
        hash(scope_key, mask_class, class),
        hash(scope_key, 'any mask')
    ] as keys
from lettered
