"""Questions to traces of the store, in SQL over the documented views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from trace_sql.errors import EmptyInputError, RefusedError, TraceSqlError
from trace_sql.literal import sql_string
from trace_sql.safe_text import utf8
from trace_sql.statements import foresee
from trace_sql.store import Settings, Store
from trace_sql.views import public_views

__all__ = ["MOST_VALUES", "Database", "Result", "public_views"]

MOST_VALUES = 5_000_000
"""Of an answer to a user's SQL: rows times columns. Printed, they are 2 GB of memory."""
_ROWS_AT_ONCE = 100_000

_UNSPLITTABLE = "unsplittable"
_FIRST_TABLE = "pass_table"
"""What a trace is mostly asked for first."""
_SPLIT = ("trace_verdicts", "trace_warnings")
"""What says whether a trace was split, and whether to trust that: it reads nearly all of it."""

if TYPE_CHECKING:
    from trace_sql import engine
    from trace_sql.hardware import Hardware
    from trace_sql.results import Rows
    from trace_sql.session import Session


class Result(NamedTuple):
    """Rows of a query with their column names; values are plain Python ones."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def only(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows with these columns alone, in this order."""
        places = [self.columns.index(column) for column in columns]
        if len(places) == 1:
            return [(row[places[0]],) for row in self.rows]
        return list(map(itemgetter(*places), self.rows))


class Database:
    """Views over `traces` (trace_id to the settings to analyse it with).

    A view is created when a query first names it; a trace is analysed when a view needs that.
    `hardware` has the peaks of GPUs and which one counts, else each trace tells its own. `pairs`
    are traces to compare, each with the one that it is compared with. `progress` gets the number
    of traces analysed and of all.
    """

    def __init__(
        self,
        store: Store,
        traces: Mapping[str, Settings],
        progress: Callable[[int, int], None] | None = None,
        hardware: Hardware | None = None,
        pairs: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._store = store
        self._hardware = hardware
        self._pairs = pairs
        self._traces = dict(traces)
        self._progress = progress
        self._own: Session | None = None
        self._users: Session | None = None
        self._locked = False
        self._answers: dict[tuple[Any, ...], Result] = {}

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        for session in (self._own, self._users):
            if session is not None:
                session.close()
        self._own = self._users = None
        self._store.settle()

    def query(self, sql: str, values: Sequence[Any] = ()) -> Result:
        """Run one of our own queries, once: sections of a report share some."""
        key = (sql, *values)
        if key not in self._answers:
            self._answers[key] = _run(self._session(), sql, values)
        return self._answers[key]

    def ask(self, sql: str) -> Result:
        """Run a user's SQL: one SELECT over the views, which can neither write nor read files.

        Raises TraceSqlError for anything but one SELECT, with DuckDB's first line for what it
        refuses, and for an answer of more than `MOST_VALUES`.
        """
        from trace_sql import engine

        sql = utf8(sql)
        try:
            session = self._for_users()
            statements = session.connection.extract_statements(sql)
        except engine.Error as error:
            raise TraceSqlError(_first_line(error)) from None
        if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
            raise TraceSqlError("give one SELECT over the views; `trace-sql schema` lists them")
        try:
            session.create_named_in(sql)
            self._lock(session)
            return _run(session, sql, (), MOST_VALUES)
        except engine.Error as error:
            raise TraceSqlError(_first_line(error)) from None

    def require_split(self, trace_id: str, *needed: str) -> None:
        """Raise what the trace's verdict says, unless it was split into passes.

        The stored views `needed` next are computed beside those that tell.
        """
        # Most of the views are not computed for what has nothing to split.
        self._session().create_unless(_UNSPLITTABLE, [*_SPLIT, *needed])
        self._refuse(_UNSPLITTABLE, trace_id)
        self._refuse("trace_verdicts", trace_id)

    def _refuse(self, view: str, trace_id: str) -> None:
        sql = f"select verdict, message from {view} where trace_id = ?"
        for verdict, message in self.query(sql, [trace_id]).rows:
            text = f"{self._store.entry(trace_id).name}: {message}"
            if verdict == "empty":
                raise EmptyInputError(text)
            if verdict == "refused":
                raise RefusedError(text)

    def _session(self) -> Session:
        """The session of our own queries.

        A capture trace has rows in the analysis that no answer may show, so that its results are
        read from their files, as those of several traces are.
        """
        if self._own is None:
            from trace_sql import engine
            from trace_sql.session import TraceSession

            chosen = list(self._traces.items())
            if len(chosen) == 1 and chosen[0][1].capture is None:
                entry = self._store.entry(chosen[0][0])
                self._own = TraceSession(self._store, entry, chosen[0][1], self._rows())
            else:
                workspace = engine.Workspace()
                engine.expect_little(False)
                self._own = self._over_files(workspace.connection, workspace.close)
        return self._own

    def _for_users(self) -> Session:
        """The session of users' SQL: a database of its own, because it is locked for good."""
        if self._users is None:
            from trace_sql import engine

            connection = engine.take_database()
            # Of the machine's memory; what does not fit ends there, instead of filling a disk.
            connection.execute("set memory_limit = '50%'")
            connection.execute("set temp_directory = ''")
            self._users = self._over_files(connection, connection.close)
        return self._users

    def _lock(self, session: Session) -> None:
        """From here on the session reads the store and nothing else, and cannot be reopened."""
        if self._locked:
            return
        self._locked = True
        folder = sql_string(self._store.folder.resolve())
        session.connection.execute(f"set allowed_directories = [{folder}]")
        session.connection.execute("set enable_external_access = false")
        session.connection.execute("set lock_configuration = true")

    def _over_files(
        self, connection: engine.DuckDBPyConnection, close: Callable[[], None]
    ) -> Session:
        from trace_sql.session import FileSession

        rows = self._rows()
        return FileSession(connection, close, self._store, self._traces, self._progress, rows)

    def _rows(self) -> dict[str, Rows]:
        """Return what gives the rows of the tables that a session makes on demand."""

        def hardware() -> Hardware:
            from trace_sql.hardware import choose_gpu

            return self._hardware or choose_gpu()

        return {
            "hardware_peaks": lambda: hardware().peak_rows(),
            "gpu_choice": lambda: hardware().choice_rows(),
            "trace_pairs": lambda: self._pairs,
        }


def foresee_split(settings: Settings) -> None:
    """Have the statements that split a trace parsed beside its flattening, if that comes next."""
    from trace_sql.analysis import creations

    foresee(lambda: creations(settings, (_UNSPLITTABLE, *_SPLIT, _FIRST_TABLE)))


def _run(session: Session, sql: str, values: Sequence[Any], most: int | None = None) -> Result:
    """Run a query; raises TraceSqlError where the answer has more than `most` values."""
    session.create_named_in(sql)
    cursor = session.connection.execute(sql, list(values))
    columns = tuple(column[0] for column in cursor.description or ())
    if most is None:
        return Result(columns, cursor.fetchall())
    rows: list[tuple[Any, ...]] = []
    while more := cursor.fetchmany(_ROWS_AT_ONCE):
        rows += more
        if len(rows) * len(columns) > most:
            raise TraceSqlError(
                f"the answer has more than {most} values (rows times columns); aggregate, choose"
                " columns or add a limit"
            )
    return Result(columns, rows)


def _first_line(error: Exception) -> str:
    """Return what DuckDB says of a query, without its guesses at names of its own."""
    line = " ".join(str(error).split("\n\n")[0].split())
    if line.startswith("Catalog Error: Table with name"):
        return f"{line.split(' Did you mean ')[0]} `trace-sql schema` lists the views."
    return line
