-- One row a file that was ingested: which part of a run it records, and what else does.
-- grain: trace_id, path
--
-- trace_id     VARCHAR    -  the trace; files of one content are one trace
-- name         VARCHAR    -  what the trace is called
-- path         VARCHAR    -  the file, or `archive!member`
-- role         VARCHAR    -  rank, merged (ranks), capture (of graphs), cpu_only or unranked
-- stage        VARCHAR    -  prefill or decode where file or folder says so
-- rank         INTEGER    -  rank of the process; NULL when unknown, and for merged ranks
-- rank_source  VARCHAR    -  header, name or unknown
-- place        VARCHAR    -  places that the file's name tells, as `tp0 dp1`; NULL for none
-- world_size   INTEGER    -  ranks of the run; NULL when unknown
-- ranks        VARCHAR[]  -  labels of the ranks that a merged file holds; NULL in others
-- conflict     VARCHAR[]  -  other traces of the same rank, stage and folder; NULL for none
-- n_repaired   BIGINT     -  places of the file that were repaired
-- n_lost       BIGINT     -  places of which nothing could be kept
-- note         VARCHAR    -  what a reader must know of the file; NULL for nothing
with
    roles as (
        select
            n.*,
            t.name,
            t.path as first_path,
            t.run,
            t.world_size,
            t.n_repaired,
            t.n_lost,
            c.ranks,
            if(t.rank_source = 'header', t.rank, n.rank) as own_rank,
            case
                when n.says_merged or c.ranks is not null
                then 'merged'
                when n.says_capture or c.captures_only
                then 'capture'
                when t.n_device_events = 0
                then 'cpu_only'
                when coalesce(own_rank, n.tp, n.dp, n.pp, n.ep) is not null
                then 'rank'
                else 'unranked'
            end as role,
            if(t.rank_source = 'header', 'header', if(n.rank is null, 'unknown', 'name')) as source
        from file_names as n
        join traces as t using (trace_id)
        join trace_contents as c using (trace_id)
    ),

    -- What only one of two files tells does not tell them apart.
    conflicts as (
        select
            a.trace_id,
            a.path,
            list(distinct b.trace_id order by b.trace_id) as others,
            list(distinct b.name order by b.name) as names
        from roles as a
        join
            roles as b
            on a.trace_id != b.trace_id
            and a.folder = b.folder
            and a.role = 'rank'
            and b.role = 'rank'
            and a.own_rank is not distinct from b.own_rank
            and a.stage is not distinct from b.stage
            and a.run is not distinct from b.run
            and coalesce(a.session = b.session, true)
            and coalesce(a.world_size = b.world_size, true)
            and coalesce(a.tp = b.tp, true)
            and coalesce(a.dp = b.dp, true)
            and coalesce(a.pp = b.pp, true)
            and coalesce(a.ep = b.ep, true)
        group by a.trace_id, a.path
    )

select
    r.trace_id,
    r.name,
    r.path,
    r.role,
    r.stage,
    if(r.role = 'merged', null, r.own_rank) as rank,
    if(r.role = 'merged', 'unknown', r.source) as rank_source,
    nullif(concat_ws(' ', 'tp' || r.tp, 'dp' || r.dp, 'pp' || r.pp, 'ep' || r.ep), '') as place,
    r.world_size,
    r.ranks,
    o.others as conflict,
    r.n_repaired,
    r.n_lost,
    nullif(
        concat_ws(
            '; ',
            if(r.path != r.first_path, 'same content as ' || r.name, null),
            'same rank as '
            || array_to_string(list_slice(o.names, 1, 3), ', ')
            || if(len(o.names) > 3, ', ... (' || len(o.names) || ' names)', ''),
            if(r.n_lost > 0, r.n_lost || ' lost', null),
            if(r.n_repaired > 0, r.n_repaired || ' repaired', null),
            len(r.ranks) || coalesce(' of ' || r.world_size, '') || ' ranks'
        ),
        ''
    ) as note
from roles as r
left join conflicts as o using (trace_id, path)
