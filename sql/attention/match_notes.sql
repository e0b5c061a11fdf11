-- One row a match with what differs between its two sides, besides the time.
-- grain: trace_id, other_trace_id, match_no
-- keep: session
--
-- trace_id        VARCHAR  -  trace 1
-- other_trace_id  VARCHAR  -  trace 2
-- match_no        BIGINT   -  the match
-- op_no           BIGINT   -  operation of trace 1 that stands for it; NULL where it has none
-- other_op_no     BIGINT   -  operation of trace 2 that stands for it; NULL where it has none
-- note            VARCHAR  -  what differs; NULL where nothing does
select
    m.trace_id,
    m.other_trace_id,
    m.match_no,
    one.op_no,
    two.op_no as other_op_no,
    nullif(
        concat_ws(
            '; ',
            if(m.other_op_nos is null, 'not in trace 2', null),
            if(m.op_nos is null, 'not in trace 1', null),
            if(
                m.level is not null and one.h_q is null,
                'no shapes: matched by the names of kernels',
                null
            ),
            if(one.operator <> two.operator, 'operator ' || two.operator, null),
            if(one.library <> two.library, one.library || ' to ' || two.library, null),
            if(one.q_dtype <> two.q_dtype, one.q_dtype || ' to ' || two.q_dtype, null),
            if(
                one.kv_dtype <> two.kv_dtype
                and (one.kv_dtype <> one.q_dtype or two.kv_dtype <> two.q_dtype),
                'keys ' || one.kv_dtype || ' to ' || two.kv_dtype,
                null
            ),
            if(
                one.h_kv <> two.h_kv,
                printf('%.0f to %.0f key heads in memory', one.h_kv, two.h_kv),
                null
            ),
            if(
                m.level = 6 and one.mask <> two.mask,
                'mask ' || one.mask || ' to ' || two.mask,
                null
            ),
            if(one.gpu <> two.gpu, one.gpu || ' to ' || two.gpu, null),
            if(
                abs(m.work_ratio - 1) > 0.001,
                printf('a call of trace 2 does %.3g times the work', 1 / m.work_ratio),
                null
            ),
            if(
                m.level is not null and not m.is_rated,
                'loads not known: calls compared as they are',
                null
            ),
            if(m.is_capped, 'trace 2 is beyond the roofline of the GPU of trace 1', null)
        ),
        ''
    ) as note
from attention_matches as m
left join attention_ops as one on one.trace_id = m.trace_id and one.op_no = m.op_nos[1]
left join attention_ops as two on two.trace_id = m.other_trace_id and two.op_no = m.other_op_nos[1]
