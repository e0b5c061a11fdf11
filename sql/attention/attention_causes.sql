-- One row an operation of attention with what most likely keeps it from its roofline, and with
-- what its time goes to.
-- grain: trace_id, op_no
-- keep: store
--
-- trace_id     VARCHAR  -    the trace
-- op_no        BIGINT   -    the operation
-- cause        VARCHAR  -    the first that applies; compute or bandwidth where nothing else does
-- attend_pct   DOUBLE   pct  kernels that attend
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
-- n_blocks     DOUBLE   -    thread blocks that a launch starts; NULL where not recorded
-- has_older    BOOLEAN  -    its kernels are of an earlier generation than the GPU
-- n_before     DOUBLE   -    copies of its tensors before a call
-- n_behind     DOUBLE   -    copies of its output behind a call
-- wrapper_us   DOUBLE   us   sum of their durations
-- score_us     DOUBLE   us   least time for the traffic of score matrices, of unfused attention
-- page_pct     DOUBLE   pct  bytes that whole pages of the cache add, at most
with
    known as (
        select
            o.*,
            p.* exclude (trace_id, op_no, has_older),
            coalesce(
                p.has_older and regexp_matches(o.gpu, 'H100|H200|H800|H20|GH200|B[23]00'), false
            ) as has_older,
            g.n_blocks,
            w.n_before,
            w.n_behind,
            w.sum_us as wrapper_us,
            o.score_bytes / o.hbm_tb_s / 1e6 as score_us,
            100 * (o.bytes_pages / nullif(o.bytes, 0) - 1) as page_pct
        from attention_ops as o
        join attention_op_parts as p using (trace_id, op_no)
        left join attention_wrappers as w using (trace_id, op_no)
        left join attention_op_grids as g using (trace_id, op_no)
    )

select
    trace_id,
    op_no,
    case
        when anomaly
        then 'model_error'
        when efficiency_pct is null
        then 'unmodeled'
        when implementation = 'unfused'
        then 'unfused'
        when implementation = 'cache'
        then 'cache_write'
        -- What takes as long as tens of launches has another reason.
        when core_us / n_calls < if(floor_kind = 'launch', 20, 2) * launch_us
        then 'launch'
        when copy_pct + fill_pct > 15
        then 'copies'
        when floor_kind = 'tiles' and floor_us > 1.5 * roofline_us
        then 'tiles'
        when has_older and efficiency_pct < 60 and phase is distinct from 'decode'
        then 'older'
        when bound = 'compute'
        then 'compute'
        else 'bandwidth'
    end as cause,
    attend_pct,
    combine_pct,
    write_pct,
    copy_pct,
    fill_pct,
    gemm_pct,
    softmax_pct,
    n_copies,
    n_fills,
    n_kernels,
    top_role,
    top_kernel,
    top_pct,
    n_blocks,
    has_older,
    n_before,
    n_behind,
    wrapper_us,
    score_us,
    page_pct
from known
