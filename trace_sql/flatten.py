"""One trace file to events.parquet and facts.parquet, in memory that the file does not set.

DuckDB parses the event list piece by piece while the file is being read, types the columns
and writes the Parquet file in one pass. Times are taken from the digits of the file: DuckDB
reads a JSON number as DECIMAL from its text. Other numbers that are not integers pass through
a double, so digits beyond its precision are lost in `args` and `extra`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.document import Document, IrregularError
from trace_sql.errors import BadInputError, TraceSqlError
from trace_sql.events import EVENT_COLUMNS
from trace_sql.facts import quoted, write_facts
from trace_sql.source import Progress, Source

if TYPE_CHECKING:
    import duckdb

_ROW_GROUP = 30720

_TEXT_KEYS = ("ph", "cat", "name", "pid", "tid", "id")
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
    import duckdb

    with duckdb.connect(config={"threads": "2", "temp_directory": str(out)}) as connection:
        connection.execute("set enable_progress_bar = false")
        try:
            source, metadata = _write_events(connection, path, out, trace_id, progress)
            write_facts(connection, out, source, metadata, trace_id=trace_id, name=name)
        except duckdb.IOException as error:
            raise TraceSqlError(f"{out}: cannot be written ({_first_line(error)})") from error


def _write_events(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    out: Path,
    trace_id: str,
    progress: Progress | None,
) -> tuple[Source, dict[str, Any]]:
    """Write events.parquet; return the source, read to its end, and the metadata."""
    source = Source(path, progress)
    try:
        return source, _copy_events(connection, source, out, trace_id, exact=False)
    except (IrregularError, BadInputError):
        # Either the quick cut went wrong or the file is: a second, careful reading tells.
        source.close()
        source = Source(path, progress)
        return source, _copy_events(connection, source, out, trace_id, exact=True)
    finally:
        source.close()


def _copy_events(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    out: Path,
    trace_id: str,
    *,
    exact: bool,
) -> dict[str, Any]:
    """Write events.parquet from `source`; return the document's metadata."""
    import duckdb
    import pyarrow as pa

    document = Document(source)
    schema = pa.schema([("piece", pa.string())])
    failures: list[BaseException] = []

    def batches() -> Iterator[Any]:
        # One piece a batch: DuckDB holds a whole batch, unnested, in memory.
        try:
            for piece in document.pieces(exact=exact):
                text = pa.array([b"[" + piece + b"]"], type=pa.binary()).cast(pa.string())
                yield pa.record_batch([text], schema=schema)
        except BaseException as error:
            failures.append(error)
            raise

    connection.register("pieces", pa.RecordBatchReader.from_batches(schema, batches()))
    try:
        connection.execute(
            f"copy ({_events_sql(trace_id)}) to {quoted(str(out / 'events.parquet'))}"
            f" (format parquet, compression zstd, row_group_size {_ROW_GROUP})"
        )
    except duckdb.IOException:
        if not failures:
            raise
    except (duckdb.InvalidInputException, UnicodeDecodeError) as error:
        # The latter where DuckDB quotes the input in its message and cuts it inside a character.
        if not failures and not exact:
            raise IrregularError from error
        if not failures:
            what = f"events that the JSON reader refuses ({_first_line(error)})"
            raise source.bad(source.raw_bytes, what) from error
    finally:
        connection.unregister("pieces")
    if failures:
        if isinstance(failures[0], pa.ArrowInvalid):
            raise IrregularError from failures[0]
        raise failures[0]
    return document.metadata()


def _events_sql(trace_id: str) -> str:
    """Return the SELECT that makes rows of EVENT_COLUMNS from the relation `pieces`."""
    event = {key: "VARCHAR" for key in _TEXT_KEYS}
    # 20 digits before the point and 18 after it hold any time, and show what ts_ns drops.
    event |= {"ts": "DECIMAL(38,18)", "dur": "DECIMAL(38,18)", "args": "JSON"}
    known = {key: None for key in event}
    ids = {key: "VARCHAR" for key in _ID_ARGS.values()}
    columns = {
        "trace_id": quoted(trace_id),
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
    other = f"json_merge_patch(raw, {quoted(json.dumps(known))}::JSON)"
    return f"""
        select {chosen}
        from (
            select
                event,
                json_transform(event.args, {quoted(json.dumps(ids))}) as ids,
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
                    unnest(from_json(piece, {quoted(json.dumps([event]))})) as event,
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
    number = f"try_cast({text} as BIGINT)"
    return f"case when {number}::VARCHAR = {text} then {number} end"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
