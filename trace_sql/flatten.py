"""One trace file to events.parquet and facts.parquet, in memory that the file does not set.

DuckDB parses the event list and types its columns. Of a small file it makes a table, which can
be analysed at once; a larger one goes to the Parquet file piece by piece while it is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.document import Document, IrregularError
from trace_sql.errors import BadInputError, NotATraceError, TraceSqlError
from trace_sql.event_sql import careful_sql, quick_sql
from trace_sql.events import FLAT_EVENTS, FLAT_FACTS
from trace_sql.facts import make_facts
from trace_sql.literal import sql_string
from trace_sql.source import Progress, Source

if TYPE_CHECKING:
    from trace_sql import engine

_SMALL = 32 << 20
"""Bytes of JSON up to which all of it is in memory at once, which takes several times as much."""

_Select = Callable[[str], str]
"""Makes the SELECT of events out of one of pieces."""

_Load = Callable[[Source, Iterator[bytes], _Select, bool], None]
"""Loads the events of pieces; the last argument is whether they were cut exactly."""


class _LargeError(Exception):
    """The file holds more than _SMALL bytes of JSON."""


@dataclass(frozen=True)
class Flattened:
    """A small file's events and facts as the tables FLAT_EVENTS and FLAT_FACTS of `workspace`."""

    workspace: engine.Workspace

    def write(self, out: Path) -> None:
        """Write `out`/events.parquet and `out`/facts.parquet; raises what `flatten` raises."""
        from trace_sql import engine

        try:
            with closing(self.workspace.cursor()) as cursor:
                _copy(cursor, FLAT_EVENTS, out / "events.parquet")
                _copy(cursor, FLAT_FACTS, out / "facts.parquet")
        except (engine.IOException, OSError) as error:
            raise _unwritten(out, error) from error


def flatten(
    path: Path, out: Path, *, trace_id: str, name: str, progress: Progress | None = None
) -> None:
    """Write `out`/events.parquet and `out`/facts.parquet from the trace file `path`.

    `path` is a JSON object with `traceEvents` or a bare list of events, gzipped or not. Every
    element of the list becomes one row, in order. `progress` gets bytes of the file read and
    in all. Raises BadInputError where the file is not one whole trace, TraceSqlError where `out`
    cannot be written; files that then exist in `out` are of no use.
    """
    flat = load(path, out, trace_id=trace_id, name=name, progress=progress)
    if flat is not None:
        with flat.workspace:
            flat.write(out)


def load(
    path: Path, out: Path, *, trace_id: str, name: str, progress: Progress | None = None
) -> Flattened | None:
    """Flatten as `flatten` does, but return what a small file holds, to be written later."""
    from trace_sql import engine

    engine.open_early()
    table = _Table(out)
    try:
        try:
            source, metadata = _read(path, progress, trace_id, table.load)
        except _LargeError:
            _flatten_large(path, out, trace_id, name, progress)
            return None
        connection = table.workspace.connection
        make_facts(connection, FLAT_EVENTS, source, metadata, trace_id=trace_id, name=name)
        return Flattened(table.workspace)
    except (engine.IOException, OSError) as error:
        raise _unwritten(out, error) from error


def _flatten_large(
    path: Path, out: Path, trace_id: str, name: str, progress: Progress | None
) -> None:
    from trace_sql import engine

    # A database of its own, so that what it spills to disk goes with it.
    with engine.connect(config={"threads": "2", "temp_directory": str(out)}) as connection:
        connection.execute("set enable_progress_bar = false")
        events = out / "events.parquet"
        source, metadata = _read(path, progress, trace_id, _into_file(connection, events))
        rows = f"read_parquet({sql_string(events)})"
        make_facts(connection, rows, source, metadata, trace_id=trace_id, name=name)
        _copy(connection, FLAT_FACTS, out / "facts.parquet")


def _copy(connection: engine.DuckDBPyConnection, rows: str, target: Path) -> None:
    connection.execute(
        f"copy {rows} to {sql_string(target)}"
        " (format parquet, parquet_version v2, compression zstd, compression_level 1,"
        " row_group_size 30720)"
    )


def _read(
    path: Path, progress: Progress | None, trace_id: str, load: _Load
) -> tuple[Source, dict[str, Any]]:
    """Load the events of a file; return the source, read to its end, and the metadata.

    The quick reading refuses what it cannot hold exactly, and a cut that went wrong. The careful
    one keeps everything or says what is wrong with the file.
    """

    def attempt(select: Callable[[str, str], str], exact: bool) -> tuple[Source, dict[str, Any]]:
        source = Source(path, progress)
        try:
            document = Document(source)
            pieces = document.pieces(exact=exact)
            load(source, pieces, lambda listed: select(trace_id, listed), exact)
            return source, document.metadata()
        finally:
            source.close()

    for select in (quick_sql, careful_sql):
        try:
            return attempt(select, False)
        except NotATraceError:
            raise
        except (IrregularError, BadInputError):
            continue
    return attempt(careful_sql, True)


class _Table:
    """Loads events into FLAT_EVENTS of `workspace`; raises _LargeError where they are many.

    Pieces go through files under `out`: the engine reads them on all cores and holds few at once,
    and to load what would let it scan a stream takes longer than to parse a small file.
    """

    workspace: engine.Workspace

    def __init__(self, out: Path) -> None:
        self._folder = out / "pieces"

    def load(self, source: Source, pieces: Iterator[bytes], select: _Select, exact: bool) -> None:
        from trace_sql import engine

        if source.file_bytes > _SMALL:
            raise _LargeError
        self._folder.mkdir(exist_ok=True)
        try:
            listed = self._written(source, pieces)
            # Behind the reading, which the engine is opened beside.
            self.workspace = engine.Workspace()
            engine.use_threads(None)
            with _explained(source, exact, []):
                self.workspace.connection.execute(f"create table {FLAT_EVENTS} as {select(listed)}")
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _written(self, source: Source, pieces: Iterator[bytes]) -> str:
        """Write the pieces; return the SELECT that reads them."""
        paths: list[Path] = []
        for piece in pieces:
            if source.raw_bytes > _SMALL:
                raise _LargeError
            paths.append(self._folder / str(len(paths)))
            paths[-1].write_bytes(b"[" + piece + b"]")
        if not paths:
            return "select '[]' as piece"
        return f"select content as piece from read_text([{', '.join(map(sql_string, paths))}])"


def _into_file(connection: engine.DuckDBPyConnection, target: Path) -> _Load:
    """Return what writes a Parquet file while the pieces come in, bounded in memory."""

    def load(source: Source, pieces: Iterator[bytes], select: _Select, exact: bool) -> None:
        # The package, not only the engine, lets it scan what pyarrow makes.
        import duckdb  # noqa: F401
        import pyarrow as pa

        schema = pa.schema([("piece", pa.string())])
        failures: list[BaseException] = []

        def batches() -> Iterator[Any]:
            # One piece a batch: DuckDB holds a whole batch, unnested, in memory.
            try:
                for text in map(_as_list, pieces):
                    yield pa.record_batch([pa.array([text], type=pa.string())], schema=schema)
            except BaseException as error:
                failures.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        connection.register("piece_stream", reader)
        with _explained(source, exact, failures):
            _copy(connection, f"({select('from piece_stream')})", target)
        connection.unregister("piece_stream")

    return load


@contextmanager
def _explained(source: Source, exact: bool, failures: list[BaseException]) -> Iterator[None]:
    """Raise what the engine's error means; `failures` of a stream come first.

    DuckDB passes on only the message of what stops the stream.
    """
    from trace_sql import engine

    try:
        yield
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
    if failures:
        raise failures[0]


def _as_list(piece: bytes) -> str:
    """Return the elements of a piece as a JSON list; IrregularError where they are not UTF-8."""
    try:
        return f"[{piece.decode()}]"
    except UnicodeDecodeError as error:
        raise IrregularError from error


def _unwritten(out: Path, error: Exception) -> TraceSqlError:
    return TraceSqlError(f"{out}: cannot be written ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
