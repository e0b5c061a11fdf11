-- One row a file that was ingested: what its path says. SGLang writes
-- `<id>-TP-<r>[-DP-<r>][-PP-<r>][-EP-<r>][-DECODE|-EXTEND].trace.json.gz`, vLLM
-- `dp0_pp0_tp1_dcp0_ep1_rank1.<ns>.pt.trace.json.gz`, torchtitan `rank1_trace.json`.
-- grain: trace_id, path
--
-- trace_id      VARCHAR  -  the trace
-- path          VARCHAR  -  the file, or `archive!member`; files of one content are one trace
-- file          VARCHAR  -  name of the file or member
-- folder        VARCHAR  -  where the file is; an archive is the folder of its members
-- session       VARCHAR  -  what SGLang names the files of one profile by; NULL in other names
-- stage         VARCHAR  -  prefill or decode: SGLang names files so, people folders
-- rank          INTEGER  -  the rank it names; NULL for none, for several, or where TP is not all
-- tp            INTEGER  -  place in tensor parallelism; NULL when not named
-- dp            INTEGER  -  place in data parallelism
-- pp            INTEGER  -  place in pipeline parallelism
-- ep            INTEGER  -  place in expert parallelism
-- says_merged   BOOLEAN  -  named as SGLang names what it merges
-- says_capture  BOOLEAN  -  named or placed as SGLang puts traces of graph captures
with
    paths as (
        select
            f.trace_id, unnest(list_distinct(list_prepend(f.path, coalesce(s.paths, [])))) as path
        from raw_facts as f
        left join raw_settings as s using (trace_id)
    ),

    files as (
        select
            *,
            regexp_extract(path, '([^/\\!]*)$', 1) as file,
            regexp_replace(path, '[/\\!][^/\\!]*$', '') as folder
        from paths
    ),

    -- A number has at most nine digits: what is longer counts something else.
    parts as (
        select
            *,
            list_transform(
                ['tp', 'dp', 'pp', 'ep'],
                lambda part:coalesce(
                    nullif(
                        regexp_extract(file, '-' || upper(part) || '-(\d{1,9})(?:[-.]|$)', 1), ''
                    ),
                    nullif(regexp_extract(file, '(?:^|_)' || part || '(\d{1,9})(?:[_.]|$)', 1), '')
                )
            ) as places,
            list_distinct(
                list_filter(
                    regexp_extract_all(file, '(?i)(?:^|[^a-z0-9])rank[-_]?(\d+)', 1) || if(
                        regexp_matches(file, '-PP-0*[1-9]'),
                        [],
                        regexp_extract_all(file, '-TP-(\d+)(?:[-.]|$)', 1)
                    ),
                    lambda digits:length(digits) < 10
                ).list_transform(lambda digits:digits::integer)
            ) as ranks
        from files
    )

select
    trace_id,
    path,
    file,
    folder,
    nullif(regexp_extract(file, '^(.+?)-TP-\d', 1), '') as session,
    case
        when regexp_matches(file, '(?i)[-_.]decode\b') or regexp_matches(folder, '(?i)[/!]decode$')
        then 'decode'
        when
            regexp_matches(file, '(?i)[-_.](extend|prefill)\b')
            or regexp_matches(folder, '(?i)[/!](extend|prefill)$')
        then 'prefill'
    end as stage,
    if(len(ranks) = 1, ranks[1], null) as rank,
    places[1]::integer as tp,
    places[2]::integer as dp,
    places[3]::integer as pp,
    places[4]::integer as ep,
    starts_with(file, 'merged-') as says_merged,
    regexp_matches(folder, '(^|[/\\!])capture_traces$')
    or regexp_matches(file, '^bs_\d+_rank\d+\.') as says_capture
from parts
