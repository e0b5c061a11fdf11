-- One row an attention call with the operation that it is a call of: calls that compute the same
-- by the same kernels, in layers of one kind. A letter behind the class tells layers apart that
-- only differ in kernels or times, A for those that take longest: variants where the trace does not
-- tell their mask. Where only a cache is written there is none.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id     VARCHAR  -  the trace
-- call_no      BIGINT   -  the call
-- op_no        BIGINT   -  its operation: 0-based, longest in sum first
-- layer_class  VARCHAR  -  full, variant, window, chunked, sparse, cross, linear; or NULL
with
    told as (
        select
            s.trace_id,
            s.call_no,
            s.shape_key,
            hash(s.kernel_key, r.is_long) as op_key,
            c.busy_ns,
            c.start_ns,
            case
                when c.implementation = 'cache'
                then null
                when c.implementation = 'linear'
                then 'linear'
                when c.mask in ('window', 'chunked')
                then c.mask
                when c.mask in ('topk', 'block_sparse')
                then 'sparse'
                when c.mask = 'dense' and c.n_q > 1 and c.n_kv <> c.n_q
                then 'cross'
                else 'full'
            end as class,
            class = 'full' and c.mask_source in ('family', 'assumed') as is_guess
        from attention_signatures as s
        join attention_calls as c using (trace_id, call_no)
        left join attention_rhythms as r using (trace_id, call_no)
    ),

    sums as (
        select
            trace_id,
            shape_key,
            op_key,
            sum(busy_ns) as sum_ns,
            avg(busy_ns) as avg_ns,
            min(start_ns) as start_ns
        from told
        group by trace_id, shape_key, op_key
    ),

    numbered as (
        select
            trace_id,
            op_key,
            row_number() over (
                partition by trace_id order by sum_ns desc, start_ns, op_key
            ) as number,
            row_number() over (
                partition by trace_id, shape_key order by avg_ns desc, start_ns, op_key
            ) as letter,
            count(*) over (partition by trace_id, shape_key) as n_letters
        from sums
    )

select
    t.trace_id,
    t.call_no,
    n.number - 1 as op_no,
    if(t.is_guess and n.n_letters > 1, 'variant', t.class) || case
        when n.n_letters = 1
        then ''
        when n.letter <= 26
        then ' ' || chr(cast(64 + n.letter as integer))
        else ' ' || n.letter
    end as layer_class
from told as t
join numbered as n using (trace_id, op_key)
