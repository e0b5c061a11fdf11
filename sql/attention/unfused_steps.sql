-- One row an operator that may be a step of attention without a fused kernel: a product of matrices
-- or a softmax, forward or backward; numbered on its thread by the products so far.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id    VARCHAR   -   the trace that holds it
-- event_id    BIGINT    -   the operator
-- pid         VARCHAR   -   host process
-- tid         VARCHAR   -   host thread
-- kind        VARCHAR   -   product, fwd (softmax) or bwd (its backward)
-- name        VARCHAR   -   its name
-- number      BIGINT    -   products of its thread up to here, itself included
-- start_ns    BIGINT    ns  start, of the operator around a product that copies its factors
-- end_ns      BIGINT    ns  end, alike
-- dims        DOUBLE[]  -   shape of what a softmax takes
-- b           DOUBLE    -   matrices of a product
-- m           DOUBLE    -   rows of the first factor
-- k           DOUBLE    -   columns of the first factor
-- n           DOUBLE    -   columns of the second
-- dtype       VARCHAR   -   type of the factors
with
    told as (
        select
            trace_id,
            event_id,
            pid,
            tid,
            name,
            ts_ns,
            ts_ns + dur_ns as end_ns,
            case
                when
                    name in ('aten::bmm', 'aten::baddbmm', 'aten::mm')
                    or starts_with(name, 'triton_tem')
                then 'product'
                when regexp_matches(name, '(?i)softmax_?backward')
                then 'bwd'
                else 'fwd'
            end as kind,
            json_extract(args, '$."Input Dims"') as shapes,
            -- The factors of baddbmm come behind what is added.
            if(name = 'aten::baddbmm', 1, 0) as first_no,
            try_cast(json_extract(shapes, '$[' || first_no || ']') as double[]) as one,
            try_cast(json_extract(shapes, '$[' || (first_no + 1) || ']') as double[]) as other,
            dtype_word(json_extract_string(args, '$."Input type"[' || first_no || ']')) as dtype,
            try_cast(json_extract_string(args, '$."Concrete Inputs"[1]') as bigint) as dim
        from timed_events
        where
            is_operator(cat)
            and dur_ns > 0
            and (
                name in (
                    'aten::bmm',
                    'aten::baddbmm',
                    'aten::mm',
                    'aten::_softmax',
                    'aten::_masked_softmax',
                    'aten::_softmax_backward_data',
                    'aten::_masked_softmax_backward'
                )
                or starts_with(name, 'triton_')
                and regexp_matches(name, '^triton_tem_\w*bmm|_softmax')
                and not contains(name, 'log_softmax')
                or starts_with(name, 'Scaled')
                and regexp_matches(name, 'Softmax(?:Backward)?$')
            )
    ),

    -- They copy factors that are views of something else, and what linear multiplies by is a
    -- weight; none stands in another.
    around as (
        select trace_id, pid, tid, name, ts_ns as begin_ns, ts_ns + dur_ns as end_ns
        from timed_events
        where
            is_operator(cat)
            and dur_ns > 0
            and name in ('aten::matmul', 'aten::einsum', 'aten::linear')
        window
            before as (
                partition by trace_id, pid, tid
                order by ts_ns, dur_ns desc
                rows between unbounded preceding and 1 preceding
            )
        qualify coalesce(ts_ns >= max(ts_ns + dur_ns) over before, true)
    )

select
    t.trace_id,
    t.event_id,
    t.pid,
    t.tid,
    t.kind,
    t.name,
    count(case when t.kind = 'product' then 1 end) over (
        partition by t.trace_id, t.pid, t.tid order by t.ts_ns, t.event_id
    ) as number,
    if(t.end_ns <= a.end_ns, a.begin_ns, t.ts_ns) as start_ns,
    if(t.end_ns <= a.end_ns, a.end_ns, t.end_ns) as end_ns,
    if(starts_with(t.name, 'triton'), null, t.one) as dims,
    if(len(t.one) = 3, t.one[1], 1) as b,
    t.one[-2] as m,
    if(a.name = 'aten::linear' and t.end_ns <= a.end_ns, null, t.one[-1]) as k,
    t.other[-1] as n,
    t.dtype
from told as t
asof left join
    around as a
    -- A condition on the left side alone would make the engine compare all with all.
    on a.trace_id = if(t.kind = 'product', t.trace_id, null)
    and a.pid = t.pid
    and a.tid = t.tid
    and a.begin_ns <= t.ts_ns
-- A softmax over another dimension than the last is none of attention.
where t.kind <> 'fwd' or t.dim is null or t.dim in (-1, len(t.one) - 1)
