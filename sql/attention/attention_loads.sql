-- One row an attention call whose requests are known in sum: from the range of its step, or from
-- its own arguments. Sums are over requests in prefill (c_) and those that generate (g_), and
-- hold what this call attends to: a part of the step where its tokens or its kernels say so.
-- grain: trace_id, call_no
-- keep: store
--
-- trace_id       VARCHAR  -  the trace
-- call_no        BIGINT   -  the call
-- c_n            DOUBLE   -  prefill requests
-- c_sq           DOUBLE   -  sum of their query tokens
-- c_sk           DOUBLE   -  sum of their key tokens, cached and new; NULL where not told
-- c_sqsq         DOUBLE   -  sum of squares of query tokens; NULL where not told
-- c_sqsk         DOUBLE   -  sum of query tokens times key tokens; NULL where not told
-- g_n            DOUBLE   -  generation requests
-- g_sq           DOUBLE   -  as c_sq
-- g_sk           DOUBLE   -  as c_sk
-- g_sqsq         DOUBLE   -  as c_sqsq
-- g_sqsk         DOUBLE   -  as c_sqsk
-- load_source    VARCHAR  -  annotation, legacy annotation, cu_seqlens or step counts
-- step_event_id  BIGINT   -  the range of the step; NULL without one
-- exact          BOOLEAN  -  whether nothing of it is assumed
-- note           VARCHAR  -  what is assumed, or does not agree
with
    candidates as (
        select
            r.trace_id,
            r.call_no,
            t.* exclude (trace_id, name, tier),
            case
                t.tier
                when 'sums'
                then 'annotation'
                when 'squares'
                then 'legacy annotation'
                else 'step counts'
            end as load_source,
            r.step_event_id
        from call_ranges as r
        join annotations as a on a.trace_id = r.trace_id and a.event_id = r.step_event_id
        join step_loads as t on t.trace_id = r.trace_id and t.name = a.name
        union all by name
        select *, 'cu_seqlens' as load_source
        from own_loads
    ),

    -- A call of fewer tokens than its step has is one of its parts, or another model's.
    fitted as (
        select
            l.*,
            l.c_sq + l.g_sq as n_tokens,
            case when c.packed then c.n_q when c.n_kv is null then c.n_q * c.batch end as n_rows,
            c.n_kv is not null and n_rows > n_tokens as is_larger,
            if(
                c.evidence = 'kernels'
                and min(c.phase_hint) over step <> max(c.phase_hint) over step,
                c.phase_hint,
                null
            ) as hint,
            case
                when l.c_n > 0 and l.g_n > 0 and (n_rows = l.c_sq or hint = 'prefill')
                then 'prefill'
                when l.c_n > 0 and l.g_n > 0 and (n_rows = l.g_sq or hint = 'decode')
                then 'decode'
                when n_rows < n_tokens
                then 'none'
                else 'all'
            end as part
        from candidates as l
        join attention_calls as c using (trace_id, call_no)
        window step as (partition by l.trace_id, l.step_event_id)
    )

select
    trace_id,
    call_no,
    {% for other, keys in [
        ("decode", ["c_n", "c_sq", "c_sk", "c_sqsq", "c_sqsk"]),
        ("prefill", ["g_n", "g_sq", "g_sk", "g_sqsq", "g_sqsk"]),
    ] %}
        {% for key in keys %}
            case
                part when 'none' then null when '{{ other }}' then 0 else {{ key }}
            end as {{ key }},
        {% endfor %}
    {% endfor %}
    load_source,
    step_event_id,
    exact and part <> 'none' as exact,
    nullif(
        concat_ws(
            '; ',
            note,
            case
                when part = 'none'
                then
                    printf(
                        'the call has %.0f tokens, its step %.0f: it is not of this load',
                        n_rows,
                        n_tokens
                    )
                when n_rows > n_tokens
                then printf('%.0f of %.0f rows are padding', n_rows - n_tokens, n_rows)
            end
        ),
        ''
    ) as note
from fitted
qualify
    row_number() over (
        partition by trace_id, call_no
        order by
            part = 'none',
            -- Of its own lengths a call knows better than a step that has fewer tokens.
            coalesce(is_larger, false),
            list_position(
                ['annotation', 'legacy annotation', 'cu_seqlens', 'step counts'], load_source
            )
    )
    = 1
