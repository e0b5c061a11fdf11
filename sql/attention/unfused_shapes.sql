-- One row an attention without a fused kernel whose shapes are recorded: what it computes. The
-- projection behind it tells heads where the softmax has them in one dimension with the batch.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace that holds the operators
-- event_id  BIGINT   -  the softmax, or its backward
-- batch     DOUBLE   -  batch
-- h_q       DOUBLE   -  query heads; 1 where none can be told from the batch
-- h_kv      DOUBLE   -  key and value heads in memory
-- n_q       DOUBLE   -  query tokens
with
    projections as (
        select
            trace_id,
            pid,
            tid,
            ts_ns,
            try_cast(
                json_extract(
                    args, '$."Input Dims"[' || if(name = 'aten::addmm', 1, 0) || ']'
                ) as double[]
            ) as dims
        from timed_events
        where
            lower(cat) in ('cpu_op', 'operator')
            and name in ('aten::linear', 'aten::addmm', 'aten::mm')
    ),

    joined as (
        select
            s.trace_id,
            s.event_id,
            s.n_rows,
            s.b,
            s.m,
            if(len(s.shape) > 2, s.shape[-2], s.m) as n_last,
            if(len(s.shape) > 3, s.shape[-3], null) as h_told,
            -- Its rows hold the outputs of all heads of a token.
            if(list_product(p.dims) = s.n_rows * s.d_v, p.dims[-1] / s.d_v, null) as h_out
        from unfused_spans as s
        asof left join
            projections as p
            on p.trace_id = s.trace_id
            and p.pid = s.pid
            and p.tid = s.tid
            and p.ts_ns >= s.end_ns
        where s.n_rows is not null
    ),

    headed as (
        select
            *,
            case
                -- Heads of a token behind one another, which share their keys.
                when h_told is not null and b * h_told * n_last = n_rows and h_out = n_last
                then n_last
                when h_told is not null
                then h_told
                when h_out = floor(h_out) and (b % h_out = 0 or m % h_out = 0)
                then h_out
                else 1
            end as h,
            case
                when h_told is not null and h <> h_told
                then h_told
                when h_told is null and b % h <> 0
                then n_last / h
                else n_last
            end as n_q,
            n_rows / nullif(h * n_q, 0) as batch
        from joined
    )

select
    trace_id,
    event_id,
    batch,
    h as h_q,
    if(b % batch = 0 and h % (b / batch) = 0, b / batch, h) as h_kv,
    n_q
from headed
