-- One row an attention without a fused kernel that adds a bias to its scores or masks them by a
-- tensor: what a fused kernel would have to read as well.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id       VARCHAR  -  the trace that holds the operators
-- event_id       BIGINT   -  the softmax
-- bias_elements  DOUBLE   -  elements of biases and masks of different shapes
-- bias_dtype     VARCHAR  -  their type
with
    told as (
        select
            trace_id,
            pid,
            tid,
            ts_ns,
            name,
            list_transform(
                json_extract(args, '$."Input Dims"[*]'), lambda d:try_cast(d as double[])
            ) as shapes,
            list_transform(shapes, lambda d:list_product(d)) as sizes,
            json_extract_string(args, '$."Input type"[*]') as types,
            try_cast(json_extract_string(args, '$."Concrete Inputs"[3]') as double) as beta
        from timed_events
        where
            lower(cat) in ('cpu_op', 'operator')
            and name in (
                'aten::add',
                'aten::add_',
                'aten::sub',
                'aten::masked_fill',
                'aten::masked_fill_',
                'aten::where',
                'aten::baddbmm'
            )
    ),

    inside as (
        select
            s.trace_id,
            s.event_id,
            o.shapes,
            o.types,
            s.n_rows * s.n_kv as n_scores,
            case
                when o.name = 'aten::baddbmm' and o.beta is distinct from 0
                then 1
                when o.name = 'aten::where' and n_scores in (o.sizes[2], o.sizes[3])
                then 1
                when starts_with(o.name, 'aten::masked') and o.sizes[1] = n_scores
                then 2
                when o.name in ('aten::add', 'aten::add_', 'aten::sub') and o.sizes[1] = n_scores
                then 2
                when o.name in ('aten::add', 'aten::sub') and o.sizes[2] = n_scores
                then 1
            end as place,
            o.sizes[place] as n_elements
        from told as o
        asof join
            unfused_spans as s
            on s.trace_id = o.trace_id
            and s.pid = o.pid
            and s.tid = o.tid
            and s.start_ns <= o.ts_ns
        where
            o.ts_ns < s.end_ns
            and s.direction = 'fwd'
            and n_elements between 2 and n_scores
            and o.shapes[place][-1] = s.n_kv
    ),

    -- An operator that calls another of its kind tells the same shape twice.
    distinct_ones as (
        select distinct
            trace_id, event_id, shapes[place] as dims, n_elements, dtype_word(types[place]) as dtype
        from inside
    )

select
    trace_id,
    event_id,
    sum(n_elements) as bias_elements,
    -- Of a mask and a bias, the larger one.
    arg_max(dtype, n_elements) as bias_dtype
from distinct_ones
group by trace_id, event_id
