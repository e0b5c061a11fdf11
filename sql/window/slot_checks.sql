-- One row a pass that fits a rule, with what its own kernels say of the split: attention must run
-- in
-- every attention slot that is seen whole and in no other slot, and no embedding inside a layer.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- pass_no      BIGINT   -  the pass
-- n_slots      BIGINT   -  attention slots seen whole
-- n_with       BIGINT   -  those in which an attention kernel runs
-- first_wrong  VARCHAR  -  the first block that contradicts the split; NULL when none does
with
    marked as (
        select
            b.trace_id,
            b.pass_no,
            b.block_no,
            any_value(b.layer_no) as layer_no,
            any_value(b.slot) as slot,
            any_value(b.begun and b.ended) as whole,
            bool_or(
                m.category in ('attention', 'mla', 'linear_attention')
                and not contains(lower(m.name), 'metadata')
            ) as attends,
            bool_or(m.is_embedding) as embeds
        from main_line as m
        asof join blocks as b on b.trace_id = m.trace_id and m.line_no >= b.start_line
        where m.line_no < b.end_line
        group by b.trace_id, b.pass_no, b.block_no
    ),

    -- Where no attention kernel is known, or a layer has no attention slot, only embeddings tell.
    attentive as (
        select m.trace_id, m.pass_no
        from marked as m
        join pass_windows as p using (trace_id, pass_no)
        join boundary_rules as r using (rule_key)
        where list_contains(r.slots, 'attn')
        group by m.trace_id, m.pass_no
        having bool_or(m.attends)
    ),

    judged as (
        select
            m.*,
            case
                when m.embeds
                then 'layer ' || m.layer_no || ': an embedding inside it'
                when a.pass_no is null
                then null
                when m.slot = 'attn' and m.whole and not m.attends
                then 'layer ' || m.layer_no || ': no attention in slot attn'
                when m.slot <> 'attn' and m.attends
                then 'layer ' || m.layer_no || ': attention in slot ' || m.slot
            end as reason
        from marked as m
        left join attentive as a using (trace_id, pass_no)
    )

select
    trace_id,
    pass_no,
    count(*) filter (slot = 'attn' and whole) as n_slots,
    count(*) filter (slot = 'attn' and whole and attends) as n_with,
    arg_min(reason, block_no) filter (reason is not null) as first_wrong
from judged
group by trace_id, pass_no
