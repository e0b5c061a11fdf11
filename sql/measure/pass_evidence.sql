-- One row a pass: what speaks for its split into layers, for a person to read.
-- grain: trace_id, pass_no
-- keep: yes
--
-- trace_id      VARCHAR  -  the trace
-- pass_no       BIGINT   -  the pass
-- evidence      VARCHAR  -  counts; attention slots; python frames; equal kernel orders
-- n_exceptions  BIGINT   -  complete layers whose kernel order differs from their type's
-- exceptions    VARCHAR  -  their numbers
with
    orders as (
        select
            trace_id,
            pass_no,
            count(*) filter (complete) as n_whole,
            count(distinct layer_type) filter (complete) as n_types,
            any_value(layer_type_source) as type_source,
            count(*) filter (complete and not usual) as n_exceptions,
            string_agg(layer_no, ',' order by layer_no) filter (
                complete and not usual
            ) as exceptions
        from layers
        group by trace_id, pass_no
    )

select
    p.trace_id,
    p.pass_no,
    concat_ws(
        '; ',
        p.n_hits
        || ' anchors, '
        || r.hits
        || ' = '
        || p.n_expected
        || if(p.depth > 1, ' in ' || p.depth || ' loops', '')
        || if(r.confidence in ('source', 'words'), ' (rule by ' || r.confidence || ')', '')
        || if(p.n_unseen > 0, ', ' || p.n_unseen || ' before the trace begins', ''),
        if(
            c.n_slots > 0 and c.n_with > 0,
            'attention in ' || c.n_with || '/' || c.n_slots || ' attn slots',
            null
        ),
        if(
            c.n_framed > 0,
            'frames ('
            || c.frame_source
            || ') agree for '
            || (c.n_framed - c.n_frame_wrong)
            || '/'
            || c.n_framed,
            null
        ),
        -- Types made from the kernels themselves prove nothing: then the orders are counted.
        case
            when o.n_whole > 0 and o.type_source = 'config'
            then
                'kernel order equal in '
                || (o.n_whole - o.n_exceptions)
                || '/'
                || o.n_whole
                || ' layers of '
                || o.n_types
                || if(o.n_types = 1, ' type', ' types')
            when o.n_whole > 0
            then
                o.n_types
                || if(o.n_types = 1, ' kernel order in ', ' kernel orders in ')
                || o.n_whole
                || ' whole layers'
        end
    ) as evidence,
    o.n_exceptions,
    o.exceptions
from pass_windows as p
join boundary_rules as r using (rule_key)
join pass_checks as c using (trace_id, pass_no)
join orders as o using (trace_id, pass_no)
where c.consistent
