-- One row a pass: what the file's name and the names of its kernels say about its phase.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id    VARCHAR  -  the trace
-- pass_no     BIGINT   -  the pass
-- file_phase  VARCHAR  -  prefill or decode, as SGLang names files of one stage
-- prefills    BOOLEAN  -  attention for prefill runs in its layers; NULL without any such word
-- decodes     BOOLEAN  -  attention for decode does
-- verifies    BOOLEAN  -  drafts are checked behind its layers
with
    names as (
        select
            trace_id,
            name,
            attends and regexp_matches(word, 'prefill|extend|context') as prefills,
            -- Sparse latent attention runs its decode kernels in prefill, too.
            category = 'attention'
            and attends
            and regexp_matches(
                word, 'decode|paged_attention|splitkv|unified_attention_3d'
            ) as decodes,
            regexp_matches(
                word,
                'verify_?tree|rejection|acceptance|speculative_?sampling|accept_?(draft_?)?tokens'
            ) as verifies
        from
            (
                select *, lower(name) as word, category in ('attention', 'mla') as attends
                from name_classes
            )
    ),

    -- What checks drafts runs behind the layers of the pass that verifies.
    kernel_words as (
        select
            a.trace_id,
            a.pass_no,
            bool_or(n.prefills and a.region = 'layer') as prefills,
            bool_or(n.decodes and a.region = 'layer') as decodes,
            bool_or(n.verifies and a.region = 'epilogue') as verifies
        from placed_activities as a
        join names as n using (trace_id, name)
        where (n.prefills or n.decodes or n.verifies) and a.pass_no is not null
        group by a.trace_id, a.pass_no
    ),

    file_words as (
        select
            trace_id,
            case
                when regexp_matches(name, '(?i)[-_.]decode\b')
                then 'decode'
                when regexp_matches(name, '(?i)[-_.](extend|prefill)\b')
                then 'prefill'
            end as phase
        from raw_facts
    )

select p.trace_id, p.pass_no, f.phase as file_phase, w.prefills, w.decodes, w.verifies
from pass_windows as p
join file_words as f using (trace_id)
left join kernel_words as w using (trace_id, pass_no)
