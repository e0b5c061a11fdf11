-- One row a kernel of attention without a fused kernel that no operator tells of: a product, a
-- softmax and a product on a stream with nothing but element-wise work and copies between, as
-- often as a model has layers. Routers choose experts behind a softmax, samplers tokens.
-- grain: trace_id, event_id
-- keep: yes
--
-- trace_id          VARCHAR  -  the trace
-- event_id          BIGINT   -  the activity
-- softmax_event_id  BIGINT   -  the softmax
-- lead_event_id     BIGINT   -  the first product
with
    classed as (
        select
            a.trace_id,
            a.event_id,
            a.pid,
            a.device,
            a.stream,
            a.name,
            case
                when n.role = 'softmax'
                then 'softmax'
                when n.role is null and starts_with(k.category, 'gemm')
                then 'product'
                when a.kind <> 'kernel' or k.category in ('elementwise', 'memory')
                then 'between'
                else 'other'
            end as class,
            row_number() over in_stream as place
        from activities as a
        left join name_classes as k on k.trace_id = a.trace_id and k.name = a.name
        left join attention_names as n on n.trace_id = a.trace_id and n.name = a.name
        anti join activity_operators as o on o.trace_id = a.trace_id and o.event_id = a.event_id
        where a.selected
        window
            in_stream as (partition by a.trace_id, a.pid, a.device, a.stream order by a.gpu_index)
    ),

    near as (
        select
            *,
            max(case when class = 'product' then place end) over before as first_place,
            max(case when class in ('other', 'softmax') then place end) over before as stop_place,
            min(case when class = 'product' then place end) over behind as last_place,
            min(case when class in ('other', 'softmax') then place end) over behind as next_place
        from classed
        window
            before as (
                partition by trace_id, pid, device, stream
                order by place
                rows between 10 preceding and 1 preceding
            ),
            behind as (
                partition by trace_id, pid, device, stream
                order by place
                rows between 1 following and 10 following
            )
    ),

    found as (
        select
            * exclude (place, event_id),
            event_id as softmax_event_id,
            unnest(range(first_place, last_place + 1)) as place
        from near
        where
            class = 'softmax'
            and first_place > coalesce(stop_place, 0)
            and last_place < coalesce(next_place, last_place + 1)
        qualify count(*) over (partition by trace_id, name) > 1
    )

select
    c.trace_id,
    c.event_id,
    f.softmax_event_id,
    arg_min(c.event_id, c.place) over (partition by f.trace_id, f.softmax_event_id) as lead_event_id
from found as f
join
    classed as c
    on c.trace_id = f.trace_id
    and c.pid = f.pid
    and c.device is not distinct from f.device
    and c.stream is not distinct from f.stream
    and c.place = f.place
qualify row_number() over (partition by c.trace_id, c.event_id order by f.first_place) = 1
