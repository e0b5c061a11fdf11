-- One row an operator that is a call of attention and calls another that is told its mask, as one
-- of a serving engine does: what that one is told. NULL where several are told differently.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id   VARCHAR  -  the trace that holds it
-- event_id   BIGINT   -  the operator
-- is_causal  BOOLEAN  -  causal flag
-- before     DOUBLE   -  keys before a query that a window has; below 0 without one
-- behind     DOUBLE   -  keys behind it; below 0 without a window
-- chunk      DOUBLE   -  keys of a chunk; 0 without chunks
{% set numbers = ["window_left", "window_right", "window_size", "chunk"] %}
with
    inside as (
        select
            c.trace_id,
            c.event_id,
            json_extract(e.args, '$."Concrete Inputs"') as scalars,
            try_cast(json_extract_string(scalars, '$[' || f.causal || ']') as boolean) as is_causal,
            {% for number in numbers %}
                try_cast(
                    json_extract_string(scalars, '$[' || f.{{ number }} || ']') as double
                ) as told_{{ number }},
            {% endfor %}
            if(told_window_size > 0, told_window_size - 1, told_window_left) as before,
            if(told_window_size > 0, 0, told_window_right) as behind,
            told_chunk as chunk_size
        from timed_events as e
        join operator_families as f using (trace_id, name)
        asof join
            attention_operators as c
            on c.trace_id = e.trace_id
            and c.pid = e.pid
            and c.tid = e.tid
            and c.start_ns <= e.ts_ns
        where
            lower(e.cat) in ('cpu_op', 'operator')
            and e.dur_ns > 0
            and f.rank = 2
            and coalesce(f.causal, f.window_size) is not null
            and e.event_id <> c.event_id
            and e.ts_ns < c.end_ns
    )

select
    trace_id,
    event_id,
    {% for told in ["is_causal", "before", "behind"] %}
        if(count(distinct {{ told }}) = 1, any_value({{ told }}), null) as {{ told }},
    {% endfor %}
    if(count(distinct chunk_size) = 1, any_value(chunk_size), null) as chunk
from inside
group by trace_id, event_id
