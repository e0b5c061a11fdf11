-- One row an operation of a pair of traces with the match that it is part of: the operations of
-- both traces that are equal in the first of their keys that both have. What has none is alone.
-- grain: trace_id, other_trace_id, side_no, op_no
-- keep: session
--
-- trace_id        VARCHAR  -  trace 1
-- other_trace_id  VARCHAR  -  trace 2
-- side_no         INTEGER  -  1 or 2: whose operation it is
-- op_no           BIGINT   -  the operation
-- by_load         BOOLEAN  -  lengths differ from call to call, so that work is compared
-- level           BIGINT   -  which key is equal, from 1, the same layers; NULL where none is
-- group_key       UBIGINT  -  equal in a match
with
    leveled as (
        select * exclude (keys), unnest(keys) as key, unnest(range(1, len(keys) + 1)) as level
        from comparison_sides
    ),

    shared as (
        select
            *,
            min(side_no) over scope < max(side_no) over scope
            -- The last key leaves the mask out, which is right only where it may be told wrong.
            and (level < 6 or bool_or(is_loose) over scope) as is_shared
        from leveled
        window scope as (partition by trace_id, other_trace_id, level, key)
    ),

    first_shared as (
        select
            trace_id,
            other_trace_id,
            side_no,
            op_no,
            any_value(by_load) as by_load,
            min(level) filter (is_shared) as level,
            arg_min(key, level) filter (is_shared) as key
        from shared
        group by trace_id, other_trace_id, side_no, op_no
    ),

    -- What the other trace's operation found a nearer one for stays alone.
    paired as (
        select
            *,
            min(side_no) over (partition by trace_id, other_trace_id, level, key)
            < max(side_no) over (partition by trace_id, other_trace_id, level, key)
            and level is not null as is_paired
        from first_shared
    )

select
    trace_id,
    other_trace_id,
    side_no,
    op_no,
    by_load,
    if(is_paired, level, null) as level,
    if(is_paired, hash(level, key), hash('alone', side_no, op_no)) as group_key
from paired
