-- One row a trace whose kernels, by their names, attend to heads of a size that no layer of its
-- config has: the config is of another model. Flash kernels round sizes up to the next they have.
-- grain: trace_id
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- problem   VARCHAR  -  what does not agree, and what helps
with
    sizes as (
        select distinct
            n.trace_id,
            n.head_dim,
            g.d_qk,
            n.head_dim >= g.d_qk
            and n.head_dim < if(n.implementation = 'flash', 2 * g.d_qk, g.d_qk + 1) as fits
        from attention_names as n
        join trace_geometry as g using (trace_id)
        where
            n.role = 'core'
            and n.implementation in ('flash', 'paged')
            and n.trace_id not in (select trace_id from trace_geometry where latent)
    )

select
    trace_id,
    printf(
        'the config has heads of %s, kernels attend to heads of %s: give --config of this model',
        string_agg(distinct cast(cast(d_qk as bigint) as varchar), ' or '),
        string_agg(distinct cast(head_dim as varchar), ' or ')
    ) as problem
from sizes
where fits is not null
group by trace_id
having not bool_or(fits)
