"""The SELECTs that make rows of EVENT_COLUMNS from pieces of an event list.

Times are taken from the digits of the file. `careful_sql` and, where a double could not tell them
apart, `quick_sql` read them as DECIMAL from the text of the number; else a double is read, and
proven to be the one that the nanoseconds give. Other numbers that are not integers pass through a
double, so digits beyond its precision are lost in `args` and `extra`.
"""

from __future__ import annotations

import json
import re

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

MARK = "\x1e"
"""Stands between events of a piece where nothing else does; no string of JSON can hold it."""

_TIME_LIMIT = 9_000_000_000_000_000
"""Times (us) beyond this do not fit ts_ns; 285 years."""


_FIRST_TIME = re.compile(rb'"ts"\s*:\s*"?(-?[0-9]+)')
_EPOCH_DIGITS = 13
"""Microseconds since 1970 have more; those since a boot or the profiler's start fewer."""
_MOST_DIGITS = 17
"""What is longer is no time, but may stand behind "ts" in arguments."""
_EXACT_US = 1 << 43
"""Below it (us) doubles lie less than a nanosecond apart, and nanoseconds are below 2^53."""
_NEAR_US = 10_000_000_000
"""Times at most this far (us) from another one are taken for its trace's: nearly three hours."""
_BARE_WORD = r"-?(?i:inf|infinity|nan)\s*[,\]}]"
_NO_JSON = (rf",\s*(?:[\]}}]|{_BARE_WORD})", rf"\[\s*{_BARE_WORD}", rf":\s*{_BARE_WORD}")
"""What the engine takes for JSON and is none: surplus commas and bare words. Each pattern begins
with one character, for which the engine looks several times as quickly as for a choice."""
_BARE_VALUE = rf":\s*(?:true|false|{_BARE_WORD})"
"""Where it does not match, what bare words and logical ids are looked for with needs no try."""
_LOGICAL_ID = rf'"(?:{"|".join(_ID_ARGS.values())})":[tf]'
"""In `args` as the engine writes them, without blanks. A double would make 1 of true."""
_OLD_ID = '"external id"'
"""How profilers before 2021 spell it (kineto#564)."""
_EXACT_ID = 1 << 53
"""From it on doubles do not tell integers apart."""


def epoch_of(piece: bytes) -> int | None:
    """Return a number of the piece (us) that looks like its times, where doubles cannot hold them.

    It is a guess from the first 64 KB: times far from it are read as well, with more work.
    """
    times = _FIRST_TIME.findall(piece, 0, 1 << 16)
    large = (int(digits) for digits in times if _EPOCH_DIGITS < len(digits) <= _MOST_DIGITS)
    return next((time for time in large if abs(time) <= _TIME_LIMIT - _NEAR_US), None)


def quick_sql(trace_id: str, pieces: str, separator: str, *, epoch: int | None) -> str:
    """Return the SELECT for events of known keys and plain values; others make it fail.

    `pieces` is a SELECT of column `piece`: objects with `separator` or MARK between them. `epoch`
    is a time (us) near all others, where they are too large for doubles. One parse of an event
    gives its columns; the number of its keys, from a second one that copies nothing, shows whether
    a key has no column, is there twice, or has a value that its column cannot hold.
    """
    event = {key: "VARCHAR" for key in _TEXT_KEYS} | {key: "JSON" for key in _OTHER_KEYS}
    ts = "DOUBLE" if epoch is None else "DECIMAL(24,6)"
    event |= {"ts": ts, "dur": "DOUBLE", "args": "JSON"}
    # A column of integers would round.
    ids = {key: "DOUBLE" for key in _ID_ARGS.values()}
    read = " + ".join(f"(event.{key} is not null)::TINYINT" for key in event)
    others = ", ".join(
        f"case when event.{key} is not null then concat('\"{key}\":', event.{key}) end"
        for key in _OTHER_KEYS
    )
    odd_times = f"{_is_odd('ts', epoch)} or {_is_odd('dur', None)}"
    columns = {
        "trace_id": sql_string(trace_id),
        "ts_ns": _quick_ns("ts", epoch),
        "dur_ns": _quick_ns("dur", None),
        "args": "event.args::VARCHAR",
        "extra": f"""case
            when keys is null or len(keys) = 0 or len(keys) <> {read} then error('keys')
            when {odd_times} then error('times')
            when {_has_odd_id()} then error('ids')
            when coalesce({", ".join(f"event.{key}" for key in _OTHER_KEYS)}) is not null
            then concat('{{', concat_ws(',', {others}), '}}')
        end""",
    }
    columns |= {key: f"event.{key}" for key in _TEXT_KEYS}
    columns |= {column: f'ids."{key}"::BIGINT' for column, key in _ID_ARGS.items()}
    chosen = ", ".join(f"{columns[column]} as {column}" for column in EVENT_COLUMNS)
    between = sql_string(f"}}{MARK}{{")
    marked = f"replace(piece, {sql_string(separator)}, {between})" if separator else "piece"
    comma, element, value = (f"regexp_matches(piece, {sql_string(one)})" for one in _NO_JSON)
    texts = f"string_split({marked}, {sql_string(MARK)})"
    lenient = f"{comma} or {element} or has_words and {value}"
    texts = f"case when {lenient} then error('no JSON') else {texts} end"
    return f"""
        select {chosen}
        from (
            select
                text,
                has_words,
                json_keys(text) as keys,
                event,
                json_transform(event.args, {sql_string(json.dumps(ids))}) as ids
            from (
                select
                    text,
                    has_words,
                    json_transform(text, {sql_string(json.dumps(event))}) as event
                from (
                    select unnest({texts}) as text, has_words
                    from (
                        select
                            piece,
                            regexp_matches(piece, {sql_string(_BARE_VALUE)}) as has_words
                        from ({pieces})
                    )
                )
            )
        )"""


def _quick_ns(key: str, epoch: int | None) -> str:
    value = f"event.{key}"
    if epoch is None:
        # In parts: the product of the whole could fall between two doubles.
        return f"(trunc({value})::BIGINT * 1000 + round(({value} - trunc({value})) * 1000)::BIGINT)"
    return f"""(case
        when {_is_near(value, epoch)}
        then ({_behind(value, epoch)}::DECIMAL(14,3) * 1000)::BIGINT + {epoch * 1000}
        else ({value} * 1000)::BIGINT
    end)::BIGINT"""


def _is_odd(key: str, epoch: int | None) -> str:
    """Return the SQL condition that nanoseconds are not exactly what the text says."""
    value = f"event.{key}"
    boolean = f"case when {value} in (0, 1) then json_type(text, '$.{key}') = 'BOOLEAN' end"
    if epoch is not None:
        return f"""case
            when {_is_near(value, epoch)}
            then {_behind(value, epoch)} <> {_behind(value, epoch)}::DECIMAL(14,3)
            else ({value} * 1000) % 1 <> 0 or abs({value}) > {_TIME_LIMIT} or {boolean}
        end"""
    inexact = f"{_quick_ns(key, None)} / 1000::DOUBLE <> {value}"
    return f"{inexact} or abs({value}) >= {_EXACT_US} or {boolean}"


def _is_near(value: str, epoch: int) -> str:
    return f"{value} between {epoch - _NEAR_US} and {epoch + _NEAR_US}"


def _behind(value: str, epoch: int) -> str:
    """Return the SQL of how far a time near `epoch` is behind it, below 0 before it.

    It fits 64 bits, with which the engine is several times as quick as with 128.
    """
    return f"({value} - {epoch})::DECIMAL(18,6)"


def _has_odd_id() -> str:
    """Return the SQL condition that `ids` are not exactly what the text says, or not all."""
    ids = [f'ids."{key}"' for key in _ID_ARGS.values()]
    inexact = [f"{one} <> trunc({one}) or abs({one}) >= {_EXACT_ID}" for one in ids]
    logical = f"has_words and regexp_matches(event.args, {sql_string(_LOGICAL_ID)})"
    old = f'ids."External id" is null and contains(event.args, {sql_string(_OLD_ID)})'
    return " or ".join([*inexact, f"({logical})", f"({old})"])


def count_sql() -> str:
    """Return the SELECT of the number of elements of a JSON list given as its parameter.

    NULL for what is no JSON, or has an element with a key twice. The engine reads more than JSON:
    what it lets pass is looked for, at the price of some lists that hold such text in a string.
    """
    no_json = sql_string("|".join(_NO_JSON))
    twice = "lambda element: len(json_keys(element)) <> list_unique(json_keys(element))"
    return f"""
        select case
            when json_valid(list) and not regexp_matches(list, {no_json}) then case
                when list_bool_or(list_transform(from_json(list, '["JSON"]'), {twice})) then null
                else json_array_length(list)
            end
        end
        from (select ?::VARCHAR as list)"""


def careful_sql(trace_id: str, pieces: str) -> str:
    """Return the SELECT that keeps all of every element, whatever it is.

    `pieces` is a SELECT of column `piece`: elements with commas between them.
    """
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
                    unnest(from_json(list, {sql_string(json.dumps([event]))})) as event,
                    unnest(from_json(list, '["JSON"]')) as raw
                from (select concat('[', piece, ']') as list from ({pieces}))
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
    """Return the SQL of a BIGINT that is NULL, never rounded, where `text` is no integer.

    Numbers with an exponent, and texts that the engine reads as whole ones, are integers too.
    """
    number = f"try_cast({text} as DOUBLE)"
    return f"""case
        when regexp_full_match({text}, '-?[0-9]+')
        then try_cast({text} as BIGINT)
        when {number} = trunc({number}) and abs({number}) < {_EXACT_ID}
        then {number}::BIGINT
    end"""
