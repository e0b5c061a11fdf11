-- One row an attention call, of those whose kernels and shape are the same, which takes long or
-- short by its place: two kinds of layers that the trace does not tell apart otherwise, such as
-- full and sliding attention. The means of both lie more than 30 % of the larger one apart, no
-- call is between, and a layer is of the same kind in every pass, or layers take turns.
-- grain: trace_id, call_no
-- keep: yes
--
-- trace_id  VARCHAR  -  the trace
-- call_no   BIGINT   -  the call
-- is_long   BOOLEAN  -  whether its layer is of those that take longer
with
    -- Where layers are not known, the place is the position among such calls of the pass.
    placed as (
        select
            *,
            row_number() over (
                partition by trace_id, kernel_key, pass_no, loop_no order by start_ns, call_no
            )
            - 1 as beat,
            coalesce(layer_no, beat) as place
        from attention_signatures
        where took_ns > 0
    ),

    means as (
        select trace_id, kernel_key, place, avg(took_ns) as avg_ns
        from placed
        group by trace_id, kernel_key, place
    ),

    gaps as (
        select *, avg_ns - lag(avg_ns) over (in_size) as gap_ns
        from means
        window in_size as (partition by trace_id, kernel_key order by avg_ns, place)
    ),

    widest as (
        select
            trace_id,
            kernel_key,
            max(gap_ns) as gap_ns,
            arg_max(avg_ns, gap_ns) as long_ns,
            count(*) as n_places
        from gaps
        group by trace_id, kernel_key
        having count(*) >= 4
    ),

    parted as (
        select m.*, w.gap_ns, w.n_places, m.avg_ns >= w.long_ns as is_long
        from means as m
        join widest as w using (trace_id, kernel_key)
    ),

    bimodal as (
        select
            trace_id,
            kernel_key,
            any_value(n_places) as n_places,
            avg(avg_ns) filter (is_long) as long_ns,
            avg(avg_ns) filter (not is_long) as short_ns
        from parted
        group by trace_id, kernel_key
        having any_value(gap_ns) > 0.3 * long_ns
    ),

    judged as (
        select
            p.trace_id,
            p.call_no,
            p.kernel_key,
            p.beat,
            q.is_long,
            b.n_places,
            -- Caches grow from pass to pass, so each pass has a middle of its own.
            p.took_ns > (
                avg(p.took_ns) filter (q.is_long) over in_pass
                + avg(p.took_ns) filter (not q.is_long) over in_pass
            )
            / 2 as seems_long,
            count(*) over whole as n_calls,
            max(p.pass_no) over whole > min(p.pass_no) over whole as has_passes
        from placed as p
        join parted as q using (trace_id, kernel_key, place)
        join bimodal as b using (trace_id, kernel_key)
        window
            whole as (partition by p.trace_id, p.kernel_key),
            in_pass as (partition by p.trace_id, p.kernel_key, p.pass_no, p.loop_no)
    ),

    turns as (
        select trace_id, kernel_key, period, bool_and(share in (0, 1)) as takes_turns
        from
            (
                select trace_id, kernel_key, period, avg(if(is_long, 1, 0)) as share
                from (select *, unnest(range(2, 13)) as period from judged)
                where n_places >= 2 * period
                group by trace_id, kernel_key, period, beat % period
            )
        group by trace_id, kernel_key, period
    ),

    steady as (
        select trace_id, kernel_key
        from judged
        where has_passes
        group by trace_id, kernel_key
        having avg(if(seems_long = is_long, 1, 0)) >= 0.95
        union
        select trace_id, kernel_key
        from turns
        where takes_turns
    )

select j.trace_id, j.call_no, j.is_long
from judged as j
join steady as s using (trace_id, kernel_key)
