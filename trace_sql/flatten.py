"""One trace file to events.parquet and facts.parquet, in memory that the file does not set.

DuckDB parses the event list piece by piece while the file is being read, types the columns
and writes the Parquet file in one pass. Times are taken from the digits of the file: DuckDB
reads a JSON number as DECIMAL from its text. Other numbers that are not integers pass through
a double, so digits beyond its precision are lost in `args` and `extra`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.document import Document, IrregularError
from trace_sql.errors import BadInputError, NotATraceError, TraceSqlError
from trace_sql.events import EVENT_COLUMNS
from trace_sql.facts import write_facts
from trace_sql.literal import sql_string
from trace_sql.source import Progress, Source

if TYPE_CHECKING:
    from trace_sql import engine

_ROW_GROUP = 30720
_SMALL = 4 << 20
"""Bytes of a trace file, gzipped or not, up to which its pieces go through files."""
_PIECES = "pieces"

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


def flatten(
    path: Path,
    out: Path,
    *,
    trace_id: str,
    name: str,
    progress: Progress | None = None,
) -> None:
    """Write `out`/events.parquet and `out`/facts.parquet from the trace file `path`.

    `path` is a JSON object with `traceEvents` or a bare list of events, gzipped or not. Every
    element of the list becomes one row, in order. `progress` gets bytes of the file read and
    in all. Raises BadInputError where the file is not one whole trace, TraceSqlError where
    `out` cannot be written; files that then exist in `out` are of no use.
    """
    from trace_sql import engine

    with engine.connect(config={"threads": "2", "temp_directory": str(out)}) as connection:
        connection.execute("set enable_progress_bar = false")
        try:
            source, metadata = _write_events(connection, path, out, trace_id, progress)
            write_facts(connection, out, source, metadata, trace_id=trace_id, name=name)
        except (engine.IOException, OSError) as error:
            raise TraceSqlError(f"{out}: cannot be written ({_first_line(error)})") from error


def _write_events(
    connection: engine.DuckDBPyConnection,
    path: Path,
    out: Path,
    trace_id: str,
    progress: Progress | None,
) -> tuple[Source, dict[str, Any]]:
    """Write events.parquet; return the source, read to its end, and the metadata.

    The quick reading refuses what it cannot hold exactly, and a cut that went wrong. The careful
    one keeps everything or says what is wrong with the file.
    """
    for exact, sql in ((False, _regular_sql(trace_id)), (False, _events_sql(trace_id))):
        source = Source(path, progress)
        try:
            return source, _copy_events(connection, source, out, sql, exact=exact)
        except NotATraceError:
            raise
        except (IrregularError, BadInputError):
            continue
        finally:
            source.close()
    source = Source(path, progress)
    try:
        sql = _events_sql(trace_id)
        return source, _copy_events(connection, source, out, sql, exact=True)
    finally:
        source.close()


def _copy_events(
    connection: engine.DuckDBPyConnection,
    source: Source,
    out: Path,
    sql: str,
    *,
    exact: bool,
) -> dict[str, Any]:
    """Write events.parquet from `source`; return the document's metadata."""
    from trace_sql import engine

    document = Document(source)
    failures: list[BaseException] = []
    _provide_pieces(connection, source, document.pieces(exact=exact), out, failures)
    try:
        connection.execute(
            f"copy ({sql}) to {sql_string(out / 'events.parquet')}"
            f" (format parquet, compression zstd, row_group_size {_ROW_GROUP})"
        )
    except engine.IOException:
        if not failures:
            raise
    except (engine.Error, UnicodeDecodeError) as error:
        # The latter where DuckDB quotes the input in its message and cuts it inside a character.
        if not failures and not exact:
            raise IrregularError from error
        if not failures:
            what = f"events that the JSON reader refuses ({_first_line(error)})"
            raise source.bad(source.raw_bytes, what) from error
    finally:
        connection.execute("drop view pieces")
        shutil.rmtree(out / _PIECES, ignore_errors=True)
    if failures:
        raise failures[0]
    return document.metadata()


def _provide_pieces(
    connection: engine.DuckDBPyConnection,
    source: Source,
    pieces: Iterator[bytes],
    out: Path,
    failures: list[BaseException],
) -> None:
    """Make the relation `pieces` of JSON lists, one a row.

    A small file's pieces go through files under `out`: to load pyarrow, and the package that lets
    the engine scan it, takes longer than to parse them. A larger file's are an Arrow stream,
    bounded in memory and on disk. What stops the stream goes into `failures`, because DuckDB only
    passes on its message.
    """
    if source.file_bytes <= _SMALL:
        folder = out / _PIECES
        folder.mkdir(exist_ok=True)
        paths: list[Path] = []
        for piece in pieces:
            paths.append(folder / str(len(paths)))
            paths[-1].write_bytes(b"[" + piece + b"]")
        listed = ", ".join(sql_string(path) for path in paths)
        rows = f"content as piece from read_text([{listed}])" if paths else "'[]' as piece"
        connection.execute(f"create or replace temp view pieces as select {rows}")
        return

    import duckdb  # noqa: F401
    import pyarrow as pa

    schema = pa.schema([("piece", pa.string())])

    def batches() -> Iterator[Any]:
        # One piece a batch: DuckDB holds a whole batch, unnested, in memory.
        try:
            for text in map(_as_list, pieces):
                yield pa.record_batch([pa.array([text], type=pa.string())], schema=schema)
        except BaseException as error:
            failures.append(error)
            raise

    connection.register("piece_stream", pa.RecordBatchReader.from_batches(schema, batches()))
    connection.execute("create or replace temp view pieces as from piece_stream")


def _as_list(piece: bytes) -> str:
    """Return the elements of a piece as a JSON list; IrregularError where they are not UTF-8."""
    try:
        return f"[{piece.decode()}]"
    except UnicodeDecodeError as error:
        raise IrregularError from error


def _regular_sql(trace_id: str) -> str:
    """Return the SELECT for events of known keys and plain values; others make it fail.

    One parse gives the columns; the number of keys of each event, from a second one that copies
    nothing, shows whether a column is missing, was not read, or is there twice. Values that a
    column would round are looked for in the text of a whole piece, which is far cheaper than in
    each event.
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
    columns = {
        "trace_id": sql_string(trace_id),
        "ts_ns": "(event.ts * 1000)::BIGINT",
        "dur_ns": "(event.dur * 1000)::BIGINT",
        "args": "event.args::VARCHAR",
        "extra": f"""case
            when odd or keys is null or len(keys) = 0 or len(keys) <> {read}
            then error('irregular')
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
                odd,
                json_transform(event.args, {sql_string(json.dumps(ids))}) as ids
            from (
                select
                    regexp_matches(piece, {sql_string(odd)}) as odd,
                    unnest(from_json(piece, {sql_string(json.dumps([event]))})) as event,
                    unnest(json_keys(piece, '$[*]')) as keys
                from pieces
            )
        )"""


def _events_sql(trace_id: str) -> str:
    """Return the SELECT that makes rows of EVENT_COLUMNS from the relation `pieces`."""
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
                from pieces
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


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
