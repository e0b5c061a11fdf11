-- One row a pass: whether the model itself runs in it or one that drafts for it, and how that is
-- known. An annotation around its launch comes first. Where passes of other layer counts share that
-- range, as in one graph of verification and drafts, it cannot mean them all: then layers decide.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id     VARCHAR  -  the trace
-- pass_no      BIGINT   -  the pass
-- kind         VARCHAR  -  target, draft or mtp; NULL where it is refused
-- kind_source  VARCHAR  -  annotation or layer count; NULL where nothing tells, it is target then
-- drafted      BOOLEAN  -  the trace has passes that draft
with
    told as (
        select
            a.trace_id,
            a.pass_no,
            arg_max(a.pass_kind, a.nesting) as pass_kind,
            arg_max(a.event_id, a.nesting) as event_id
        from pass_annotations as a
        where a.pass_kind is not null
        group by a.trace_id, a.pass_no
    ),

    counted as (
        select
            p.trace_id,
            p.pass_no,
            p.status,
            t.pass_kind,
            p.status <> 'refused' and p.n_layers <> v.n_layers as is_other,
            bool_or(p.n_layers = v.n_layers) over (partition by p.trace_id, t.event_id) as shares,
            v.n_layers_source in ('option', 'config')
            or bool_or(p.status <> 'refused' and p.n_layers <> v.n_layers) over (
                partition by p.trace_id
            ) as counts_tell
        from pass_windows as p
        join verdicts as v using (trace_id)
        left join told as t using (trace_id, pass_no)
    ),

    decided as (
        select
            *,
            case
                when pass_kind in ('draft', 'mtp')
                then pass_kind
                when is_other and (pass_kind is null or shares)
                then 'draft'
                when status <> 'refused'
                then 'target'
            end as kind
        from counted
    )

select
    trace_id,
    pass_no,
    kind,
    case
        when kind = pass_kind
        then 'annotation'
        when kind is not null and counts_tell
        then 'layer count'
    end as kind_source,
    bool_or(coalesce(kind <> 'target', false)) over (partition by trace_id) as drafted
from decided
