-- One row a kernel that may open the blocks of layers, proposed from the order of kernels alone,
-- best first, with what speaks for it and the options that accept it. A person chooses.
-- grain: trace_id, rank
-- keep: store
--
-- trace_id          VARCHAR  -  the trace
-- rank              BIGINT   -  1-based, best first
-- device            BIGINT   -  its device
-- stream            BIGINT   -  its stream
-- name              VARCHAR  -  name as the profiler wrote it
-- simplified_name   VARCHAR  -  readable name
-- n_layers          BIGINT   -  layers of a pass
-- blocks_per_layer  BIGINT   -  kernels of the name in a layer
-- n_passes          BIGINT   -  whole passes seen
-- anchor_offset     BIGINT   -  kernels of the name before the first whole pass
-- n_kernels         BIGINT   -  kernels of a usual layer
-- n_alike           BIGINT   -  layers that run the most frequent order of kernels
-- n_compared        BIGINT   -  layers whose end the next one shows
-- lead              BIGINT   -  kernels of a pass, behind its marks, before its first one
-- begins_behind     VARCHAR  -  readable name of what stands before a pass's layers
-- ends_before       VARCHAR  -  readable name of what stands behind them
-- reasons           VARCHAR  -  what speaks for it and against it, in words
-- options           VARCHAR  -  options for a command line that split the trace so
with
    -- TEXT matches on every stream.
    scattered as (
        select trace_id, name
        from activities
        where selected
        group by trace_id, name
        having count(distinct(device, stream)) > 1
    ),

    -- The first kernel of a layer is best, and one a layer: parts of a layer need names.
    ranked as (
        select
            r.*,
            t.text,
            p.n_marks,
            p.repeats,
            p.before,
            p.behind,
            row_number() over (
                partition by r.trace_id
                order by
                    p.n_line desc,
                    r.blocks_per_layer > 1 and p.attends,
                    2 * r.lead + power(r.blocks_per_layer - 1, 2),
                    r.n_alike desc,
                    r.name
            ) as rank
        from anchor_rhythms as r
        join pass_breaks as p using (trace_id, device, stream)
        join anchor_texts as t using (trace_id, name)
        anti join scattered using (trace_id, name)
    )

select
    r.trace_id,
    r.rank,
    r.device,
    r.stream,
    r.name,
    k.simplified_name,
    r.n_layers,
    r.blocks_per_layer,
    r.n_passes,
    r.n_before as anchor_offset,
    r.n_kernels,
    r.n_alike,
    r.n_compared,
    r.lead,
    b.simplified_name as begins_behind,
    a.simplified_name as ends_before,
    concat_ws(
        '; ',
        if(
            r.lead = 0,
            'the first of a layer',
            if(r.lead = 1, 'one kernel of layer 0 runs', r.lead || ' kernels of layer 0 run')
            || ' before it'
        ),
        if(
            r.repeats,
            r.n_marks || ' names run once a pass, between layers',
            'one pass is seen, no other confirms the count'
        ),
        if(r.n_alike = r.n_compared, null, 'layers of several kinds'),
        if(r.blocks_per_layer > 1, 'a layer has several', null),
        if(f.trace_id is not null, 'python frames may refuse it: they name the layers', null)
    ) as reasons,
    '--anchor-kernel ' || if(
        regexp_matches(r.text, '^[A-Za-z0-9_.:/]+$'),
        r.text,
        '''' || replace(r.text, '''', '''"''"''') || ''''
    )
    || ' --blocks-per-layer '
    || r.blocks_per_layer
    || ' --num-layers '
    || r.n_layers
    || ' --anchor-offset '
    || r.n_before as options
from ranked as r
left join (select distinct trace_id from activity_frames) as f using (trace_id)
left join kernel_categories as k using (trace_id, name)
left join kernel_categories as b on b.trace_id = r.trace_id and b.name = r.before
left join kernel_categories as a on a.trace_id = r.trace_id and a.name = r.behind
where r.rank <= 5
