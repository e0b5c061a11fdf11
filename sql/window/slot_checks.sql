-- One row a pass that fits a rule, with what its own kernels say of the split: attention must run
-- in every attention slot that is seen whole and in no other, and no embedding inside a layer.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- pass_no      BIGINT   -  the pass
-- n_slots      BIGINT   -  attention slots seen whole
-- n_with       BIGINT   -  those in which an attention kernel runs
-- first_wrong  VARCHAR  -  the first block that contradicts the split; NULL when none does
with
    -- Where no attention kernel is known, or a layer has no attention slot, only embeddings tell.
    -- Of a pass that is cut, other passes tell that one is known; and an MLP that no other slot of
    -- attention holds is in the wrong one.
    attentive as (
        select
            m.trace_id, m.pass_no, any_value(r.blocks_per_layer > 1 and t.n_feeds = 1) as feeds_once
        from block_traits as m
        join boundary_rules as r using (rule_key)
        join
            (
                select
                    trace_id,
                    rule_key,
                    bool_or(attends) as attends,
                    count(*) filter (starts_with(slot, 'attn') and feeds) as n_feeds
                from block_traits
                group by trace_id, rule_key
            ) as t using (trace_id, rule_key)
        where len(list_filter(r.slots, lambda x:starts_with(x, 'attn'))) > 0
        group by m.trace_id, m.pass_no
        having
            bool_or(m.attends)
            or bool_or(m.short and t.attends)
            or any_value(r.confidence) = 'words'
    ),

    judged as (
        select
            m.*,
            case
                when m.embeds
                then 'layer ' || m.layer_no || ': an embedding inside it'
                when m.odd is not null
                then 'layer ' || m.layer_no || ': ' || m.odd
                when a.pass_no is null
                then null
                when starts_with(m.slot, 'attn') and m.whole and not m.attends
                then 'layer ' || m.layer_no || ': no attention in slot ' || m.slot
                when m.layer_no is null and m.attends
                then 'attention behind the final norm of a loop'
                when not starts_with(m.slot, 'attn') and m.attends
                then 'layer ' || m.layer_no || ': attention in slot ' || m.slot
                when starts_with(m.slot, 'attn') and m.short and m.feeds and a.feeds_once
                then 'layer ' || m.layer_no || ': an MLP behind the attention in slot ' || m.slot
            end as reason
        from block_traits as m
        left join attentive as a using (trace_id, pass_no)
    )

select
    trace_id,
    pass_no,
    count(*) filter (starts_with(slot, 'attn') and whole) as n_slots,
    count(*) filter (starts_with(slot, 'attn') and whole and attends) as n_with,
    arg_min(reason, block_no) filter (reason is not null) as first_wrong
from judged
group by trace_id, pass_no
