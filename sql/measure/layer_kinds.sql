-- One row a visit of a layer with its type: from the model config, else from its kernels (dense or
-- expert feed-forward, and a letter for each different kernel order; "?" where it is cut).
-- grain: trace_id, pass_no, loop_no, layer_no
-- keep: store
--
-- trace_id           VARCHAR    -  the trace
-- pass_no            BIGINT     -  the pass
-- loop_no            BIGINT     -  visit of the layers
-- layer_no           BIGINT     -  the layer
-- layer_type         VARCHAR    -  the type
-- layer_type_source  VARCHAR    -  config or kernels
-- compress_ratio     BIGINT     -  from the config; NULL where it has none
-- roles              VARCHAR[]  -  parts of the type, from the config; else NULL
-- complete           BOOLEAN    -  all of its blocks are in the trace
-- has_moe            BOOLEAN    -  runs expert or routing kernels
-- usual              BOOLEAN    -  its kernel order is the commonest of its type in the loop
with
    first_seen as (
        select
            trace_id,
            sequence,
            any_value(if(has_moe, 'MOE', 'DENSE')) as base,
            min(pass_no * 100000 + layer_no) as first_no
        from layer_sequences
        where complete
        group by trace_id, sequence
    ),

    lettered as (
        select
            *,
            row_number() over (partition by trace_id, base order by first_no) as letter_no,
            count(*) over (partition by trace_id, base) as n_letters
        from first_seen
    ),

    typed as (
        select
            s.*,
            coalesce(
                t.layer_type,
                case
                    when not s.complete
                    then if(s.has_moe, 'MOE', 'DENSE') || '?'
                    when l.n_letters = 1
                    then l.base
                    when l.letter_no <= 26
                    then l.base || '.' || chr(cast(64 + l.letter_no as integer))
                    else l.base || '.' || l.letter_no
                end
            ) as layer_type,
            if(t.layer_type is null, 'kernels', 'config') as layer_type_source,
            t.compress_ratio,
            nullif(t.roles, []) as roles
        from layer_sequences as s
        left join lettered as l using (trace_id, sequence)
        join pass_windows as p on p.trace_id = s.trace_id and p.pass_no = s.pass_no
        -- The config's types are of its own layers, not of a draft's.
        left join
            trace_layer_types as t
            on t.trace_id = s.trace_id
            and t.layer_no = s.layer_no
            and not p.is_draft
    ),

    commonest as (
        select trace_id, pass_no, loop_no, layer_type, mode(sequence) as sequence
        from typed
        where complete
        group by trace_id, pass_no, loop_no, layer_type
    )

select
    t.trace_id,
    t.pass_no,
    t.loop_no,
    t.layer_no,
    t.layer_type,
    t.layer_type_source,
    t.compress_ratio,
    t.roles,
    t.complete,
    t.has_moe,
    t.complete and t.sequence = c.sequence as usual
from typed as t
left join commonest as c using (trace_id, pass_no, loop_no, layer_type)
