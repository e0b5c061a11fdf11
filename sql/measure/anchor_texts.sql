-- One row a kernel name of a regular rhythm with a text that stands in it and in no other name of
-- the trace: what --anchor-kernel takes. The function's own name if that is enough, else a long
-- word, else a piece, else all. A name that is a part of another, or cannot be typed, has none.
-- grain: trace_id, name
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- name      VARCHAR  -  name as the profiler wrote it
-- text      VARCHAR  -  the text
with
    -- What stands late in a layer is no better than what stands early.
    early as (
        select distinct trace_id, name
        from anchor_rhythms
        where not regexp_matches(name, '[\p{Cc}\p{Cf}]')
        qualify
            row_number() over (
                partition by trace_id, device, stream order by blocks_per_layer > 1, lead, name
            )
            <= 16
            or row_number() over (
                partition by trace_id, device, stream order by lead, blocks_per_layer, name
            )
            <= 16
    ),

    pieces as (
        select
            trace_id,
            name,
            unnest(
                list_concat(
                    regexp_extract_all(name, '^(?:void )?(?:[\w ()]+::)*(\w{4,60})(?:[<(]|$)', 1),
                    regexp_extract_all(name, '[A-Za-z_]\w{5,59}(?:<\w+>)?'),
                    list_transform(
                        range(1, least(length(name), 2000), 10), lambda n:substr(name, n, 40)
                    ),
                    [left(name, 60), left(name, 80), name]
                )
            ) as text
        from early
    ),

    texts as (
        select distinct
            trace_id,
            name,
            trim(text) as text,
            case
                when text = name and length(name) <= 80
                then 0
                when
                    trim(text)
                    = regexp_extract(name, '^(?:void )?(?:[\w ()]+::)*(\w{4,60})(?:[<(]|$)', 1)
                then 0
                when regexp_matches(text, '^\w*(?:kernel|Kernel|Functor|gemm|Impl)\w*(?:<\w+>)?$')
                then 1
                when regexp_matches(text, '^[A-Za-z]\w{7,}(?:<\w+>)?$')
                then 2
                when starts_with(name, text) and length(text) <= 80
                then 3
                else 4
            end as quality
        from pieces
        where length(trim(text)) >= 4
    )

select t.trace_id, t.name, arg_min(t.text, (t.quality, length(t.text), t.text)) as text
from texts as t
anti join
    (
        select t.trace_id, t.name, t.text
        from texts as t
        join name_classes as n on n.trace_id = t.trace_id and n.name <> t.name
        where contains(n.name, t.text)
    ) as o using (trace_id, name, text)
group by t.trace_id, t.name
