-- One row a match: operations of trace 1 and those of trace 2 that do the same, or one that the
-- other trace does not have. Times are per call, and where the load of calls differs, that of
-- trace 2 is scaled to the work of trace 1; so ratios of swapped traces are inverse. The level
-- says what is the same: 1 layers, 2 kind of layer, 3 lengths, 4 all but a growing length, 5 all
-- but the heads of keys, 6 all but the mask.
-- grain: trace_id, other_trace_id, match_no
-- keep: session
--
-- trace_id            VARCHAR   -    trace 1
-- other_trace_id      VARCHAR   -    trace 2
-- match_no            BIGINT    -    0-based, longest in trace 1 first, trace 2 alone last
-- level               BIGINT    -    how near, 1 to 6; NULL where one trace has it alone
-- op_nos              BIGINT[]  -    operations of trace 1; NULL where it has none
-- other_op_nos        BIGINT[]  -    operations of trace 2; NULL where it has none
-- n_calls             BIGINT    -    calls in trace 1
-- other_n_calls       BIGINT    -    calls in trace 2
-- sum_us              DOUBLE    us   busy time in trace 1
-- other_sum_us        DOUBLE    us   busy time in trace 2
-- mean_us             DOUBLE    us   of a call in trace 1
-- other_mean_us       DOUBLE    us   of a call in trace 2
-- pass_us             DOUBLE    us   of a pass in trace 1
-- other_pass_us       DOUBLE    us   of a pass in trace 2
-- work_ratio          DOUBLE    -    work of a call of trace 1 over that of trace 2
-- other_scaled_us     DOUBLE    us   time of trace 2 for the calls and the work of trace 1
-- difference_us       DOUBLE    us   other_scaled_us minus sum_us
-- time_ratio          DOUBLE    -    other_scaled_us over sum_us; below 1: trace 2 is faster
-- floor_ratio         DOUBLE    -    the part of it that GPU and types make: ratio of rooflines
-- quality_ratio       DOUBLE    -    the part that kernels make: ratio of shares of roofline
-- roofline_pct        DOUBLE    pct  trace 1's time at its own roofline over its time
-- other_roofline_pct  DOUBLE    pct  the same of trace 2
-- is_capped           BOOLEAN   -    trace 2 is faster than trace 1 can be on its own GPU
-- efficiency_pct      DOUBLE    pct  100 * time_ratio, at least roofline_pct; 100 is parity
-- pct_of_wall         DOUBLE    -    share of the wall time of trace 1 in percent
-- is_rated            BOOLEAN   -    loads are known, or need not be, to compare calls
with
    -- A match has at least one side, so that one of both is never NULL.
    paired as (
        select
            coalesce(one.trace_id, two.trace_id) as trace_id,
            coalesce(one.other_trace_id, two.other_trace_id) as other_trace_id,
            one.level,
            one.op_nos,
            two.op_nos as other_op_nos,
            one.n_calls,
            two.n_calls as other_n_calls,
            one.sum_us,
            two.sum_us as other_sum_us,
            one.mean_us,
            two.mean_us as other_mean_us,
            one.sum_us / nullif(one.n_passes, 0) as pass_us,
            two.sum_us / nullif(two.n_passes, 0) as other_pass_us,
            one.by_load or two.by_load as is_by_load,
            nullif(one.call_work, 0) / nullif(two.call_work, 0) as known_ratio,
            case
                when one.sum_us is null or two.sum_us is null
                then null
                when is_by_load
                then coalesce(known_ratio, 1)
                else 1
            end as work_ratio,
            one.roofline_pct,
            two.roofline_pct as other_roofline_pct,
            one.pct_of_wall,
            not is_by_load or known_ratio is not null as is_rated
        from (from match_sides where side_no = 1) as one
        full join
            (from match_sides where side_no = 2) as two using (trace_id, other_trace_id, group_key)
    ),

    timed as (
        select
            *,
            other_mean_us * work_ratio * n_calls as other_scaled_us,
            other_scaled_us / nullif(sum_us, 0) as time_ratio,
            roofline_pct / nullif(other_roofline_pct, 0) as quality_ratio
        from paired
    )

select
    trace_id,
    other_trace_id,
    row_number() over (
        partition by trace_id, other_trace_id
        order by sum_us desc nulls last, other_sum_us desc, op_nos, other_op_nos
    )
    - 1 as match_no,
    level,
    op_nos,
    other_op_nos,
    n_calls,
    other_n_calls,
    sum_us,
    other_sum_us,
    mean_us,
    other_mean_us,
    pass_us,
    other_pass_us,
    work_ratio,
    other_scaled_us,
    other_scaled_us - sum_us as difference_us,
    time_ratio,
    time_ratio / nullif(quality_ratio, 0) as floor_ratio,
    quality_ratio,
    roofline_pct,
    other_roofline_pct,
    coalesce(100 * time_ratio < roofline_pct, false) as is_capped,
    if(time_ratio is null, null, greatest(100 * time_ratio, roofline_pct)) as efficiency_pct,
    pct_of_wall,
    is_rated
from timed
