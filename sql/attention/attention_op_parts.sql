-- One row an operation of attention with what its time goes to, by what its activities do.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id     VARCHAR  -    the trace
-- op_no        BIGINT   -    the operation
-- attend_pct   DOUBLE   pct  kernels that attend, their combine and further steps included
-- combine_pct  DOUBLE   pct  the part that combines the parts of split keys
-- write_pct    DOUBLE   pct  writes to the cache
-- copy_pct     DOUBLE   pct  copies, and kernels that only copy
-- fill_pct     DOUBLE   pct  fills
-- gemm_pct     DOUBLE   pct  matrix products
-- softmax_pct  DOUBLE   pct  softmax of unfused attention
-- n_copies     DOUBLE   -    copies a call
-- n_fills      DOUBLE   -    fills a call
-- n_kernels    DOUBLE   -    kernels, copies and fills a call
-- top_role     VARCHAR  -    what the longest of them does
-- top_kernel   VARCHAR  -    its readable name
-- top_pct      DOUBLE   pct  its share
-- has_older    BOOLEAN  -    its kernels are of an earlier generation than Hopper, as names tell
with
    classed as (
        select
            *,
            case
                when role in ('copy', 'fill')
                then role
                when regexp_matches(kernel, '(?i)copy|\bcontiguous')
                then 'copy'
                when regexp_matches(kernel, '(?i)fill(functor|_)|memset')
                then 'fill'
                else role
            end as part
        from attention_op_kernels
    )

select
    k.trace_id,
    k.op_no,
    coalesce(sum(k.op_pct) filter (k.part in ('core', 'combine', 'step')), 0) as attend_pct,
    coalesce(sum(k.op_pct) filter (k.part = 'combine'), 0) as combine_pct,
    coalesce(sum(k.op_pct) filter (k.part = 'kv_write'), 0) as write_pct,
    coalesce(sum(k.op_pct) filter (k.part = 'copy'), 0) as copy_pct,
    coalesce(sum(k.op_pct) filter (k.part = 'fill'), 0) as fill_pct,
    coalesce(sum(k.op_pct) filter (k.part = 'gemm'), 0) as gemm_pct,
    coalesce(
        sum(k.op_pct) filter (
            k.part = 'softmax' or (k.part = 'other' and regexp_matches(k.kernel, '(?i)softmax'))
        ),
        0
    ) as softmax_pct,
    coalesce(sum(k.n_launches) filter (k.part = 'copy'), 0) / any_value(t.n_calls) as n_copies,
    coalesce(sum(k.n_launches) filter (k.part = 'fill'), 0) / any_value(t.n_calls) as n_fills,
    sum(k.n_launches) / any_value(t.n_calls) as n_kernels,
    arg_max(k.role, (k.sum_us, k.kernel)) as top_role,
    arg_max(k.kernel, (k.sum_us, k.kernel)) as top_kernel,
    max(k.op_pct) as top_pct,
    coalesce(
        bool_and(
            regexp_matches(
                k.name,
                '(?i)pytorch_flash::|\bflash::flash_|flash_(fwd|bwd)_|sm_?(70|75|80|86)(\D|$)'
            )
            and not regexp_matches(k.name, '(?i)sm_?(90|100|103|120)')
        ) filter (k.role = 'core'),
        false
    ) as has_older
from classed as k
join attention_op_times as t using (trace_id, op_no)
group by k.trace_id, k.op_no
