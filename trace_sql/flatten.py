"""One trace file to events.parquet, losses.parquet and facts.parquet, in memory of its own size.

DuckDB parses the event list and types its columns. Of a small file it makes a table, which can
be analysed at once; a larger one goes to the Parquet file piece by piece while it is read.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trace_sql.document import Document
from trace_sql.errors import TraceSqlError
from trace_sql.event_sql import careful_sql, count_sql, epoch_of, quick_sql
from trace_sql.events import FLAT_EVENTS, FLAT_FACTS, FLAT_LOSSES
from trace_sql.facts import make_facts
from trace_sql.literal import sql_string
from trace_sql.losses import Losses
from trace_sql.piece_loading import Select, copy, stream, write_pieces
from trace_sql.source import Progress, Source, TraceFile
from trace_sql.text_reading import Count, IrregularError

if TYPE_CHECKING:
    from trace_sql import engine

_SMALL = 32 << 20
"""Bytes of JSON up to which all of it is in memory at once, which takes several times as much."""

_BATCH_BYTES = 5 << 19
"""Bytes of pieces that the engine gets at once; one piece where it must keep all as JSON."""


class _LargeError(Exception):
    """The file holds more than _SMALL bytes of JSON."""


class Flattened(NamedTuple):
    """A trace that was read; where it is small, still as tables of `workspace`, to be written.

    The tables are FLAT_EVENTS, FLAT_LOSSES and FLAT_FACTS. `n_documents` counts those of the file.
    """

    workspace: engine.Workspace | None
    n_documents: int

    def write(self, out: Path) -> None:
        """Write the files of a small trace to `out`; raises what `flatten` raises."""
        from trace_sql import engine

        if self.workspace is None:
            return
        try:
            with closing(self.workspace.cursor()) as cursor:
                for table, name in _FILES.items():
                    copy(cursor, table, out / name)
        except (engine.IOException, OSError) as error:
            raise _unwritten(out, error) from error


_FILES = {
    FLAT_EVENTS: "events.parquet",
    FLAT_LOSSES: "losses.parquet",
    FLAT_FACTS: "facts.parquet",
}


def flatten(
    path: Path, out: Path, *, trace_id: str, name: str, progress: Progress | None = None
) -> int:
    """Write `out`/events.parquet, losses.parquet and facts.parquet from the trace file `path`.

    `path` holds a JSON object with `traceEvents` or a bare list of events, packed or not. Every
    element of the list becomes one row, in order, or is counted as lost; of several documents in
    the file this is the first. Returns the number of documents. `progress` gets bytes of the file
    read and in all. Raises BadInputError where nothing of the file can be read, NotATraceError
    where it is something else, TraceSqlError where `out` cannot be written; files that then exist
    in `out` are of no use.
    """
    flat = load(TraceFile(path), out, trace_id=trace_id, name=name, progress=progress)
    if flat.workspace is not None:
        with flat.workspace:
            flat.write(out)
    return flat.n_documents


def load(
    file: TraceFile,
    out: Path,
    *,
    trace_id: str,
    name: str,
    progress: Progress | None = None,
    strict: bool = False,
    memory_limit: int | None = None,
) -> Flattened:
    """Flatten as `flatten` does, but return what a small file holds, to be written later.

    Raises LossyError where the text cannot be read as it stands and `strict` is set. The engine
    takes no more than `memory_limit` bytes for a large file, and spills to `out`.
    """
    from trace_sql import engine

    engine.open_early()
    reading = _Reading(file, out, trace_id, name, progress, strict)
    try:
        try:
            return reading.into_table()
        except _LargeError:
            return reading.into_files(memory_limit)
    except (engine.IOException, OSError) as error:
        raise _unwritten(out, error) from error
    except engine.OutOfMemoryException as error:
        what = "the memory limit is too low for this file; give more with --memory-limit"
        raise TraceSqlError(f"{file.path}: {what} ({_first_line(error)})") from error
    finally:
        reading.close()


class _Reading:
    """One file on its way to events, losses and facts."""

    def __init__(
        self,
        file: TraceFile,
        out: Path,
        trace_id: str,
        name: str,
        progress: Progress | None,
        strict: bool,
    ) -> None:
        self._file = file
        self._out = out
        self._trace_id = trace_id
        self._name = name
        self._progress = progress
        self._strict = strict
        self._losses = Losses(out / "losses.json")

    def close(self) -> None:
        self._losses.close()

    def into_table(self) -> Flattened:
        """Make the tables of a small file; raises _LargeError where it is none."""
        from trace_sql import engine, statements

        made: list[engine.Workspace] = []

        def load(source: Source, pieces: Iterator[bytes], select: Select, _: bool) -> int:
            if source.likely_bytes > _SMALL:
                raise _LargeError
            folder = self._out / "pieces"
            folder.mkdir(exist_ok=True)
            try:
                listed = write_pieces(folder, _bounded(source, pieces))
                # Behind the reading, which the engine is opened beside.
                workspace = engine.Workspace()
                made[:] = [workspace]
                # The engine reads files of text on one thread, whatever it is given.
                engine.expect_little(True)
                statements.parse_foreseen()
                connection = workspace.connection
                connection.execute(f"create table {FLAT_EVENTS} as {select(listed)}")
                row = connection.execute(f"select count(*) from {FLAT_EVENTS}").fetchone()
                return int(row[0]) if row else 0
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        source, document, n_events = self._read(load)
        connection = made[0].connection
        self._describe(connection, FLAT_EVENTS, source, document, n_events)
        return Flattened(made[0], document.n_documents)

    def into_files(self, memory_limit: int | None) -> Flattened:
        """Write the files of a large one while it is read, bounded in memory."""
        from trace_sql import engine

        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": "2",
            "temp_directory": str(self._out),
        }
        if memory_limit is not None:
            config["memory_limit"] = f"{memory_limit}B"
        # A database of its own, so that what it spills to disk goes with it.
        with engine.connect(config=config) as connection:
            connection.execute("set enable_progress_bar = false")
            events = self._out / "events.parquet"

            def load(_: Source, pieces: Iterator[bytes], select: Select, checked: bool) -> int:
                batch_bytes = 1 if checked else _BATCH_BYTES
                return stream(connection, pieces, select, events, batch_bytes)

            source, document, n_events = self._read(load)
            rows = f"read_parquet({sql_string(events)})"
            self._describe(connection, rows, source, document, n_events)
            for table in (FLAT_LOSSES, FLAT_FACTS):
                copy(connection, table, self._out / _FILES[table])
        return Flattened(None, document.n_documents)

    def _describe(
        self,
        connection: engine.DuckDBPyConnection,
        events: str,
        source: Source,
        document: Document,
        n_events: int,
    ) -> None:
        """Make the losses and the facts of what was read."""
        if self._strict:
            self._losses.refuse(source.label)
        self._losses.make_table(
            connection,
            FLAT_LOSSES,
            trace_id=self._trace_id,
            events=n_events - document.n_counted,
        )
        make_facts(connection, events, source, document, trace_id=self._trace_id, name=self._name)

    def _read(self, load: _Load) -> tuple[Source, Document, int]:
        """Load the events; return the source, read to its end, its document, and their number.

        The quick reading refuses what it cannot hold exactly, and a cut that went wrong. The
        checked one keeps everything that is whole.
        """
        try:
            return self._attempt(load, None)
        except IrregularError:
            self._losses.close()
            self._losses = Losses(self._out / "losses.json")
        from trace_sql import engine

        with engine.connect(config={"threads": "1"}) as checker:

            def count(piece: bytes) -> int | None:
                try:
                    row = checker.execute(count_sql(), [f"[{piece.decode()}]"]).fetchone()
                except UnicodeDecodeError:
                    return None
                return row[0] if row else None

            return self._attempt(load, count)

    def _attempt(self, load: _Load, count: Count | None) -> tuple[Source, Document, int]:
        source = Source(self._file.path, self._file.member, self._progress)
        failures: list[BaseException] = []
        try:
            document = Document(source, self._losses, self._file.document, count)
            pieces = document.pieces()
            first = next(pieces, b"")

            def select(listed: str) -> str:
                if count is not None:
                    return careful_sql(self._trace_id, listed)
                return quick_sql(self._trace_id, listed, document.separator, epoch=epoch_of(first))

            with _explained(source, count is not None, failures):
                kept = _noting(itertools.chain([first] if first else [], pieces), failures)
                n_events = load(source, kept, select, count is not None)
            if count is not None and n_events != document.n_counted:
                raise TraceSqlError(
                    f"{source.label}: {n_events} rows of {document.n_counted} events; this is an"
                    " error of the reader, please report it"
                )
            return source, document, n_events
        finally:
            source.close()


_Load = Callable[[Source, Iterator[bytes], Select, bool], int]
"""Loads the events of pieces, which were checked or not; returns their number."""


def _bounded(source: Source, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a small file; raises _LargeError where it is none."""
    for piece in pieces:
        if source.raw_bytes > _SMALL:
            raise _LargeError
        yield piece


def _noting(pieces: Iterator[bytes], failures: list[BaseException]) -> Iterator[bytes]:
    """Yield the pieces, and note what stops them: the engine passes on only its message."""
    try:
        yield from pieces
    except BaseException as error:
        failures.append(error)
        raise


@contextmanager
def _explained(source: Source, checked: bool, failures: list[BaseException]) -> Iterator[None]:
    """Raise what the engine's error means; `failures` of a stream come first."""
    from trace_sql import engine

    try:
        yield
    except (engine.IOException, engine.OutOfMemoryException):
        if not failures:
            raise
    except (engine.Error, UnicodeDecodeError) as error:
        # The latter where DuckDB quotes the input in its message and cuts it inside a character.
        if not failures and not checked:
            raise IrregularError from error
        if not failures:
            what = f"events that the JSON reader refuses ({_first_line(error)})"
            raise source.bad(source.raw_bytes, what) from error
    if failures:
        raise failures[0]


def _unwritten(out: Path, error: Exception) -> TraceSqlError:
    return TraceSqlError(f"{out}: cannot be written ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
