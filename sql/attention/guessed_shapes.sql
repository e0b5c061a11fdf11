-- One row an operator of attention of no known order of arguments, where its first three tensors
-- of a size (behind the gradient of a backward one) can only be query, key and value.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace that holds it
-- event_id  BIGINT   -  the operator
-- batch     DOUBLE   -  batch
-- n_q       DOUBLE   -  query tokens of a sequence; of all where packed
-- n_kv      DOUBLE   -  key tokens
-- h_q       DOUBLE   -  query heads
-- h_kv      DOUBLE   -  key and value heads
-- d_qk      DOUBLE   -  head size of query and key
-- d_v       DOUBLE   -  head size of value
-- packed    BOOLEAN  -  tokens of several requests stand in one dimension
-- n_seqs    DOUBLE   -  their number
-- q_dtype   VARCHAR  -  type of the query
-- kv_dtype  VARCHAR  -  type of the key
with
    listed as (
        select
            a.trace_id,
            a.event_id,
            if(f.direction = 'bwd', 1, 0) as skip,
            list_transform(
                json_extract(a.input_dims, '$[*]'), lambda d:try_cast(d as double[])
            ) as shapes,
            list_transform(
                json_extract_string(a.input_types, '$[*]'), lambda t:dtype_word(t)
            ) as types,
            list_filter(range(len(shapes)), lambda i:len(shapes[i + 1]) in (3, 4)) as places
        from operator_texts as a
        join operator_families as f using (trace_id, name)
        where f.layout = 'ANY'
    ),

    picked as (
        select
            *,
            shapes[places[1 + skip] + 1] as q,
            shapes[places[2 + skip] + 1] as k,
            shapes[places[3 + skip] + 1] as v,
            types[places[1 + skip] + 1] as q_dtype,
            types[places[2 + skip] + 1] as kv_dtype,
            -- Begins of sequences are whole numbers in a row of their own.
            list_filter(
                range(len(shapes)),
                lambda i:len(shapes[i + 1]) = 1 and types[i + 1] in ('int32', 'int64')
            ) as rows_of_numbers,
            shapes[rows_of_numbers[1] + 1][1] - 1 as begins
        from listed
    ),

    fitted as (
        select
            *,
            case
                when len(q) = 3 and begins > 0
                then 'TND'
                -- Heads are few, and those of a key a part of those of a query.
                when len(q) = 4 and (q[3] > 256 or q[3] % nullif(k[3], 0) <> 0)
                then 'BHND'
                when len(q) = 4 and (q[2] > 256 or q[2] % nullif(k[2], 0) <> 0)
                then 'BNHD'
            end as layout
        from picked
        where
            len(q) = len(k)
            and len(k) = len(v)
            and q[-1] = k[-1]
            and k[1:-2] = v[1:-2]
            and (len(q) = 3 or q[1] = k[1])
    ),

    shaped as (
        select
            *,
            tensor_shape(q, layout) as qs,
            tensor_shape(k, layout) as ks,
            tensor_shape(v, layout) as vs
        from fitted
        where layout is not null
    )

select
    trace_id,
    event_id,
    qs.batch as batch,
    qs.n as n_q,
    ks.n as n_kv,
    qs.h as h_q,
    ks.h as h_kv,
    qs.d as d_qk,
    vs.d as d_v,
    layout = 'TND' as packed,
    if(layout = 'TND', begins, null) as n_seqs,
    q_dtype,
    kv_dtype
from shaped
where qs.h <= 256 and qs.h % nullif(ks.h, 0) = 0
