-- One row a call of attention with the peaks of the GPU that it is measured against. Products
-- are computed in the wider of the types of query and key. INT8 queries (quantized attention)
-- meet INT8 keys, and the product with the values is of their type, else of the output's.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id         VARCHAR  -     the trace
-- call_no          BIGINT   -     the call
-- gpu              VARCHAR  -     name in hardware_peaks; NULL when unknown
-- precision        VARCHAR  -     of its products, int8+fp16 for two; NULL when no type is known
-- peak_tflops      DOUBLE   -     TFLOPS that count, of two precisions by their shares
-- peak_kind        VARCHAR  -     datasheet or measured
-- peak_status      VARCHAR  -     sourced, derived, unsourced, measured, file or unknown
-- measured_tflops  DOUBLE   -     measured TFLOPS; NULL when unknown
-- most_tflops      DOUBLE   -     the larger of printed and measured TFLOPS
-- hbm_tb_s         DOUBLE   tb_s  memory bandwidth
-- units            BIGINT   -     SMs or CUs
-- peak_note        VARCHAR  -     what to know about the peak
-- problem          VARCHAR  -     why there is no peak
with
    -- Calls are many, their types and head sizes few.
    kinds as (
        select
            trace_id,
            q_dtype,
            kv_dtype,
            o_dtype,
            coalesce(d_qk / (d_qk + d_v), 0.5) as qk_share,
            list(call_no) as calls
        from attention_calls
        group by trace_id, q_dtype, kv_dtype, o_dtype, qk_share
    ),

    typed as (
        select
            *,
            row_number() over (partition by trace_id) as kind_no,
            regexp_replace(q_dtype, '^(fp8|fp4).*', '\1') as q,
            regexp_replace(kv_dtype, '^(fp8|fp4).*', '\1') as kv,
            if(o_dtype in ('bf16', 'fp16'), o_dtype, 'fp16') as o,
            ['fp4', 'int8', 'fp8', 'fp16', 'bf16', 'tf32', 'fp32', 'fp64'] as widths
        from kinds
    ),

    precise as (
        select
            *,
            if(q <> 'int8' and list_position(widths, kv) > list_position(widths, q), kv, q) as qk,
            case
                when q <> 'int8' then qk when kv in ('fp8', 'fp16', 'bf16', 'fp32') then kv else o
            end as pv
        from typed
    ),

    parts as (
        select trace_id, kind_no, 0 as part, qk as precision, if(qk = pv, 1.0, qk_share) as share
        from precise
        union all
        select trace_id, kind_no, 1 as part, pv as precision, 1.0 - qk_share as share
        from precise
        where qk <> pv
    ),

    summed as (
        select
            p.trace_id,
            p.kind_no,
            string_agg(p.precision, '+' order by p.part) as precision,
            if(
                count(t.peak_tflops) = count(*), 1 / sum(p.share / t.peak_tflops), null
            ) as peak_tflops,
            if(
                count(t.measured_tflops) = count(*), 1 / sum(p.share / t.measured_tflops), null
            ) as measured_tflops,
            1 / sum(
                p.share / greatest(coalesce(t.measured_tflops, 0), coalesce(t.datasheet_tflops, 0))
            ) as most_tflops,
            arg_min(t.peak_kind, p.part) as peak_kind,
            arg_min(t.peak_status, p.part) as peak_status,
            string_agg(distinct t.note, '; ') as peak_note
        from parts as p
        left join trace_peaks as t using (trace_id, precision)
        group by p.trace_id, p.kind_no
    ),

    called as (select trace_id, kind_no, unnest(calls) as call_no from typed),

    sizes as (select distinct gpu, hbm_tb_s from hardware_peaks)

select
    s.trace_id,
    c.call_no,
    g.gpu,
    s.precision,
    s.peak_tflops,
    s.peak_kind,
    s.peak_status,
    s.measured_tflops,
    s.most_tflops,
    h.hbm_tb_s,
    g.units,
    s.peak_note,
    case
        when g.gpu is null
        then g.problem
        when s.precision is null
        then 'the types of its tensors are not known'
        when s.peak_tflops is null
        then 'no ' || s.precision || ' peak of ' || g.gpu || ' is known: --gpu FILE gives one'
    end as problem
from summed as s
join called as c using (trace_id, kind_no)
join trace_gpus as g using (trace_id)
left join sizes as h using (gpu)
