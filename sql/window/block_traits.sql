-- One row a block with what its kernels tell of it: whether attention or an embedding runs in it,
-- and, in a trace with a short pass, the order of kernels behind its anchor.
-- grain: trace_id, pass_no, block_no
-- keep: yes
--
-- trace_id  VARCHAR    -  the trace
-- pass_no   BIGINT     -  the pass
-- block_no  BIGINT     -  0-based block within the whole pass
-- layer_no  BIGINT     -  0-based layer
-- slot      VARCHAR    -  which part of the layer it is
-- rule_key  INTEGER    -  the boundary rule
-- n_blocks  BIGINT     -  blocks of the whole pass
-- whole     BOOLEAN    -  its begin and its end are in the trace
-- short     BOOLEAN    -  of a pass that is cut, whose end is not proven, or that words bound
-- by_words  BOOLEAN    -  its rule goes by words
-- odd       VARCHAR    -  by words: what no layer has; NULL without
-- attends   BOOLEAN    -  an attention kernel runs in it
-- feeds     BOOLEAN    -  behind an attention kernel one runs that only an MLP does
-- embeds    BOOLEAN    -  an embedding runs in it
-- names     UBIGINT[]  -  hashes of kernel names on its anchor's stream; NULL without short pass
with
    passes_of as (
        select
            p.trace_id,
            p.pass_no,
            p.rule_key,
            p.n_blocks,
            r.confidence = 'words' as by_words,
            p.status <> 'complete' or not p.closed or r.confidence = 'words' as short,
            bool_or(p.status <> 'complete' or not p.closed or r.confidence = 'words') over (
                partition by p.trace_id
            ) as compares
        from pass_windows as p
        join boundary_rules as r using (rule_key)
        where p.status <> 'refused'
    ),

    spans as (
        select
            b.*,
            p.rule_key,
            p.n_blocks,
            p.short,
            p.by_words,
            p.compares,
            m.line_no as anchor_line,
            m.stream as anchor_stream
        from blocks as b
        join passes_of as p using (trace_id, pass_no)
        left join main_line as m using (trace_id, event_id)
    )

select
    b.trace_id,
    b.pass_no,
    b.block_no,
    any_value(b.layer_no) as layer_no,
    any_value(b.slot) as slot,
    any_value(b.rule_key) as rule_key,
    any_value(b.n_blocks) as n_blocks,
    any_value(b.begun and b.ended) as whole,
    any_value(b.short) as short,
    any_value(b.by_words) as by_words,
    case
        when bool_or(b.by_words and m.category in ('sampling', 'embedding'))
        then 'an embedding or sampling inside it'
        -- Two layers of one missing anchor; what moves data may stand between kernels of one.
        when
            regexp_matches(
                string_agg(if(m.attends, 'a', 'x'), '' order by m.line_no) filter (
                    b.by_words
                    and m.stream = b.anchor_stream
                    and m.category
                    not in ('memory', 'kv_cache', 'rope', 'quant', 'elementwise', 'comm')
                ),
                'ax+a'
            )
        then 'attention twice in it'
    end as odd,
    bool_or(m.attends) as attends,
    coalesce(
        max(m.line_no) filter (m.category in ('moe', 'activation'))
        > min(m.line_no) filter (m.attends and m.category <> 'linear_attention'),
        false
    ) as feeds,
    bool_or(m.is_embedding) as embeds,
    -- Copies and fills may be the host's own and come between, and so may another stream's kernels.
    if(
        any_value(b.compares),
        coalesce(
            list(hash(m.name) order by m.line_no) filter (
                m.line_no > coalesce(b.anchor_line, -1)
                and m.stream = b.anchor_stream
                and not starts_with(m.name, 'Memcpy')
                and not starts_with(m.name, 'Memset')
                and b.compares
            ),
            []
        ),
        null
    ) as names
from main_line as m
asof join spans as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
where m.line_no < b.end_line
group by b.trace_id, b.pass_no, b.block_no
