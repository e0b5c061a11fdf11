"""The SELECTs that make rows of EVENT_COLUMNS from pieces of an event list.

Times are taken from the digits of the file: DuckDB reads a JSON number as DECIMAL from its text.
Other numbers that are not integers pass through a double, so digits beyond its precision are lost
in `args` and `extra`.
"""

from __future__ import annotations

import json

from trace_sql.events import EVENT_COLUMNS
from trace_sql.literal import sql_string

_TEXT_KEYS = ("ph", "cat", "name", "pid", "tid", "id")
_OTHER_KEYS = ("s", "bp", "cname", "sf")
"""Keys without a column that the Chrome format defines and profilers write."""
_ID_ARGS = {
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "external_id": "External id",
    "python_id": "Python id",
    "python_parent_id": "Python parent id",
}
"""Column -> key of `args` it is read from."""

_TIME_LIMIT = 9_000_000_000_000_000
"""Times (us) beyond this do not fit ts_ns; 285 years."""


def quick_sql(trace_id: str, pieces: str) -> str:
    """Return the SELECT for events of known keys and plain values; others make it fail.

    `pieces` is a SELECT of JSON lists as column `piece`, as for `careful_sql`. One parse gives
    the columns; the number of keys of each event, from a second one that copies nothing, shows
    whether a column is missing, was not read, or is there twice. Values that a column would round
    are looked for in the text of a whole piece, which is far cheaper than in each event.
    """
    event = {key: "VARCHAR" for key in _TEXT_KEYS} | {key: "JSON" for key in _OTHER_KEYS}
    event |= {"ts": "DECIMAL(21,3)", "dur": "DECIMAL(21,3)", "args": "JSON"}
    ids = {key: "BIGINT" for key in _ID_ARGS.values()}
    read = " + ".join(f"(event.{key} is not null)::TINYINT" for key in event)
    others = ", ".join(f"'{key}', event.{key}" for key in _OTHER_KEYS)
    # More than three decimals, an exponent; an id that is no integer, or spelt the old way.
    odd = "|".join(
        (
            r'"(?:ts|dur)"\s*:\s*(?:[tf]|"?-?[0-9]+(?:\.[0-9]{4}|\.?[0-9]*[eE]))',
            rf'"(?:{"|".join(ids)})"\s*:\s*(?:"|[tf]|-?[0-9]+[.eE])',
            '"external id"',
        )
    )
    # Within what is unnested: as a column of its own it may be looked for in every event.
    plain = f"case when regexp_matches(piece, {sql_string(odd)}) then error('odd') else piece end"
    columns = {
        "trace_id": sql_string(trace_id),
        "ts_ns": "(event.ts * 1000)::BIGINT",
        "dur_ns": "(event.dur * 1000)::BIGINT",
        "args": "event.args::VARCHAR",
        "extra": f"""case
            when keys is null or len(keys) = 0 or len(keys) <> {read} then error('irregular')
            when coalesce({", ".join(f"event.{key}" for key in _OTHER_KEYS)}) is not null
            then json_merge_patch('{{}}', json_object({others}))::VARCHAR
        end""",
    }
    columns |= {key: f"event.{key}" for key in _TEXT_KEYS}
    columns |= {column: f'ids."{key}"' for column, key in _ID_ARGS.items()}
    chosen = ", ".join(f"{columns[column]} as {column}" for column in EVENT_COLUMNS)
    return f"""
        select {chosen}
        from (
            select
                event,
                keys,
                json_transform(event.args, {sql_string(json.dumps(ids))}) as ids
            from (
                select
                    unnest(
                        from_json({plain}, {sql_string(json.dumps([event]))})
                    ) as event,
                    unnest(json_keys(piece, '$[*]')) as keys
                from ({pieces})
            )
        )"""


def careful_sql(trace_id: str, pieces: str) -> str:
    """Return the SELECT that keeps all of every element, whatever it is."""
    event = {key: "VARCHAR" for key in _TEXT_KEYS}
    # 20 digits before the point and 18 after it hold any time, and show what ts_ns drops.
    event |= {"ts": "DECIMAL(38,18)", "dur": "DECIMAL(38,18)", "args": "JSON"}
    known = {key: None for key in event}
    ids = {key: "VARCHAR" for key in _ID_ARGS.values()}
    columns = {
        "trace_id": sql_string(trace_id),
        "ts_ns": _nanoseconds("ts"),
        "dur_ns": _nanoseconds("dur"),
        "args": "event.args::VARCHAR",
        "extra": "extra",
    }
    columns |= {key: f"event.{key}" for key in _TEXT_KEYS}
    columns |= {column: _integer(f'ids."{key}"') for column, key in _ID_ARGS.items()}
    # The spelling of profilers before 2021 (kineto#564).
    old_id = """json_extract_string(event.args, '$."external id"')"""
    columns["external_id"] = _integer(f"""coalesce(ids."External id", {old_id})""")
    chosen = ", ".join(f"{columns[column]} as {column}" for column in EVENT_COLUMNS)
    other = f"json_merge_patch(raw, {sql_string(json.dumps(known))}::JSON)"
    return f"""
        select {chosen}
        from (
            select
                event,
                json_transform(event.args, {sql_string(json.dumps(ids))}) as ids,
                case
                    when raw is null then 'null'
                    when not starts_with(raw::VARCHAR, '{{') then raw::VARCHAR
                    when {_is_lossy("ts")} or {_is_lossy("dur")} then concat(
                        '{{',
                        concat_ws(
                            ',',
                            case when {_is_lossy("ts")} then {_original("ts")} end,
                            case when {_is_lossy("dur")} then {_original("dur")} end,
                            nullif(({other}::VARCHAR)[2:-2], '')
                        ),
                        '}}'
                    )
                    else nullif({other}::VARCHAR, '{{}}')
                end as extra
            from (
                select
                    unnest(from_json(piece, {sql_string(json.dumps([event]))})) as event,
                    unnest(from_json(piece, '["JSON"]')) as raw
                from ({pieces})
            )
        )"""


def _nanoseconds(key: str) -> str:
    value = f"event.{key}"
    fits = f"{value} between -{_TIME_LIMIT} and {_TIME_LIMIT}"
    return f"case when {fits} then ({value} * 1000)::BIGINT end"


def _is_lossy(key: str) -> str:
    """Return the SQL condition that the time column of `key` does not hold its value exactly."""
    value = f"event.{key}"
    return f"""(case
        when {value} is null then coalesce(json_type(raw, '$.{key}'), 'NULL') <> 'NULL'
        when {value} in (0, 1) then json_type(raw, '$.{key}') = 'BOOLEAN'
        when {value} not between -{_TIME_LIMIT} and {_TIME_LIMIT} then true
        else ({value} * 1000) % 1 <> 0
    end)"""


def _original(key: str) -> str:
    """Return the SQL of `"key":value` with the value as the file has it.

    The DECIMAL is nearer to the digits of the file than the double in `raw`.
    """
    value = f"event.{key}"
    return f"""concat('"{key}":', case
        when {value} is null or {value} in (0, 1) then json_extract(raw, '$.{key}')::VARCHAR
        else rtrim(rtrim({value}::VARCHAR, '0'), '.')
    end)"""


def _integer(text: str) -> str:
    """Return the SQL of a BIGINT that is NULL, never rounded, where `text` is no integer."""
    return f"case when ltrim({text}, '-0123456789') = '' then try_cast({text} as BIGINT) end"
