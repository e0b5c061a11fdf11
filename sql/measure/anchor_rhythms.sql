-- One row a kernel name that may open the blocks of layers, by the order of the stream's kernels
-- alone: as many a pass as the layers or a multiple.
-- grain: trace_id, device, stream, name
-- keep: yes
--
-- trace_id          VARCHAR  -  the trace
-- device            BIGINT   -  the device
-- stream            BIGINT   -  the stream
-- name              VARCHAR  -  name as the profiler wrote it
-- n_layers          BIGINT   -  layers of a pass: the count most names support
-- blocks_per_layer  BIGINT   -  kernels of the name in a layer
-- n_passes          BIGINT   -  whole passes
-- n_before          BIGINT   -  kernels of the name before the first whole pass
-- lead              BIGINT   -  kernels of a pass, behind its marks, before its first one
-- n_alike           BIGINT   -  layers that run the most frequent order of kernels
-- n_compared        BIGINT   -  layers whose end the next one shows
-- n_kernels         BIGINT   -  kernels of such a layer
with
    counts as (
        select trace_id, device, stream, per_pass, count(*) as n_names
        from name_beats
        group by trace_id, device, stream, per_pass
    ),

    -- A name that runs twice in each layer supports half its count, too, but less.
    chosen as (
        select c.trace_id, c.device, c.stream, c.per_pass as n_layers
        from counts as c
        join counts as o using (trace_id, device, stream)
        where o.per_pass % c.per_pass = 0
        group by c.trace_id, c.device, c.stream, c.per_pass
        qualify
            row_number() over (
                partition by c.trace_id, c.device, c.stream
                order by sum(if(o.per_pass = c.per_pass, 2, 1) * o.n_names) desc, c.per_pass
            )
            = 1
    ),

    fitting as (
        select b.*, c.n_layers, divide(b.per_pass, c.n_layers) as blocks_per_layer
        from name_beats as b
        join chosen as c using (trace_id, device, stream)
        where b.per_pass % c.n_layers = 0
    ),

    openers as (
        select
            f.trace_id,
            f.device,
            f.stream,
            f.name,
            k.line_no,
            k.chain,
            (k.hit_no - f.n_before) % f.per_pass as hit_no,
            f.per_pass,
            f.blocks_per_layer
        from fitting as f
        join stream_kernels as k using (trace_id, device, stream, name)
        where
            k.hit_no >= f.n_before
            and k.hit_no < f.n_before + f.per_pass * f.n_passes
            and (k.hit_no - f.n_before) % f.blocks_per_layer = 0
    ),

    layer_orders as (
        select
            trace_id,
            device,
            stream,
            name,
            lead(line_no) over in_order - line_no as n_kernels,
            lead(chain) over in_order - chain as kernels,
            hit_no + blocks_per_layer < per_pass as is_inner
        from openers
        window in_order as (partition by trace_id, device, stream, name order by line_no)
    ),

    alike as (
        select
            trace_id,
            device,
            stream,
            name,
            kernels,
            count(*) as n_same,
            any_value(n_kernels) as n_kernels
        from layer_orders
        where is_inner
        group by trace_id, device, stream, name, kernels
    )

select
    f.trace_id,
    f.device,
    f.stream,
    f.name,
    any_value(f.n_layers) as n_layers,
    any_value(f.blocks_per_layer) as blocks_per_layer,
    any_value(f.n_passes) as n_passes,
    any_value(f.n_before) as n_before,
    any_value(f.lead) as lead,
    max(a.n_same) as n_alike,
    cast(sum(a.n_same) as bigint) as n_compared,
    arg_max(a.n_kernels, a.n_same) as n_kernels
from fitting as f
join alike as a using (trace_id, device, stream, name)
group by f.trace_id, f.device, f.stream, f.name
