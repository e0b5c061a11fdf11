"""A session over traces of the store: the documented views, ready to be queried."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trace_sql.analysis import STORED_TABLES, analysed, create_table
from trace_sql.base_tables import BASE_TABLES
from trace_sql.errors import EmptyInputError, RefusedError, TraceSqlError, UsageError
from trace_sql.literal import sql_string
from trace_sql.store import Settings, Store
from trace_sql.views import View, load_views, sources


def public_views() -> list[View]:
    """Return the views a session offers: all but those kept only while a trace is analysed."""
    return [view for view in load_views().values() if view.keep != "yes"]


@dataclass(frozen=True)
class Result:
    """Rows of a query with their column names; values are plain Python ones."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Database:
    """Views over `traces` (trace_id to the settings to analyse it with).

    A view is created when a query first names it; a trace is analysed when a view needs that.
    `progress` gets the number of traces analysed and of all.
    """

    def __init__(
        self,
        store: Store,
        traces: Mapping[str, Settings],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        from trace_sql import engine

        self._store = store
        self._traces = dict(traces)
        self._progress = progress
        self._created: set[str] = set()
        self._locked = False
        self._connection = engine.connect()
        self._provide_raw()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def query(self, sql: str, values: Sequence[Any] = ()) -> Result:
        """Run one of our own queries."""
        self._create_named_in(sql)
        cursor = self._connection.execute(sql, list(values))
        columns = tuple(column[0] for column in cursor.description or ())
        return Result(columns, cursor.fetchall())

    def ask(self, sql: str) -> Result:
        """Run a user's SQL: one SELECT over the views, which can neither write nor read files.

        Raises TraceSqlError with DuckDB's first line for SQL it refuses, UsageError for anything
        but one SELECT.
        """
        from trace_sql import engine

        try:
            statements = self._connection.extract_statements(sql)
        except engine.Error as error:
            raise TraceSqlError(_first_line(error)) from None
        if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
            raise UsageError("give one SELECT over the views; `trace-sql schema` lists them")
        try:
            self._create_named_in(sql)
            self._lock()
            return self.query(sql)
        except engine.Error as error:
            raise TraceSqlError(_first_line(error)) from None

    def require_split(self, trace_id: str) -> None:
        """Raise what the trace's verdict says, unless it was split into passes."""
        # What needs no splitting is asked first: most of the views are not computed for it.
        self._refuse("unsplittable", trace_id)
        # In one go with what every answer ends with.
        self._analysed(["trace_verdicts", "trace_warnings"])
        self._refuse("trace_verdicts", trace_id)

    def _refuse(self, view: str, trace_id: str) -> None:
        sql = f"select verdict, message from {view} where trace_id = ?"
        for verdict, message in self.query(sql, [trace_id]).rows:
            text = f"{self._store.entry(trace_id).name}: {message}"
            if verdict == "empty":
                raise EmptyInputError(text)
            if verdict == "refused":
                raise RefusedError(text)

    def _provide_raw(self) -> None:
        entries = [self._store.entry(trace_id) for trace_id in self._traces]
        events = [entry.events_path for entry in entries]
        self._relation("raw_events", BASE_TABLES["raw_events"], events, numbered=True)
        facts = [entry.facts_path for entry in entries]
        self._relation("raw_facts", BASE_TABLES["raw_facts"], facts)
        create_table(
            self._connection,
            "raw_settings",
            BASE_TABLES["raw_settings"],
            [
                (
                    entry.trace_id,
                    entry.settings.run,
                    entry.settings.tags or {},
                    entry.settings.config_path,
                )
                for entry in entries
            ],
        )

    def _relation(
        self, name: str, columns: Mapping[str, str], paths: list[Path], numbered: bool = False
    ) -> None:
        """Create a view over Parquet files, or an empty table where there are none."""
        if not paths:
            create_table(self._connection, name, dict(columns), [])
            return
        listed = ", ".join(map(sql_string, paths))
        extra = "*, file_row_number as event_id" if numbered else "*"
        self._connection.execute(
            f"create view {name} as select {extra} "
            f"from read_parquet([{listed}], file_row_number = {str(numbered).lower()})"
        )

    def _create_named_in(self, sql: str) -> None:
        """Create the views that `sql` names, with what they read."""
        words = set(re.findall(r"[a-z_][a-z0-9_]*", sql.lower()))
        needed = _needed([view.name for view in public_views() if view.name in words])
        new = [name for name in needed if name not in self._created]
        stored = [name for name in new if _is_stored(name)]
        folders = self._analysed(stored) if stored else []
        for name in new:
            self._created.add(name)
            if _is_stored(name):
                paths = [folder / f"{name}.parquet" for folder in folders]
                self._relation(name, _columns(name), paths)
            else:
                self._connection.execute(f"create view {name} as {load_views()[name].text}")

    def _analysed(self, names: list[str]) -> list[Path]:
        folders = []
        for number, (trace_id, settings) in enumerate(self._traces.items()):
            if self._progress:
                self._progress(number, len(self._traces))
            entry = self._store.entry(trace_id)
            folders.append(analysed(self._store, entry, settings, names))
        return folders

    def _lock(self) -> None:
        """From here on the session reads the store and nothing else, and cannot be reopened."""
        if self._locked:
            return
        self._locked = True
        folder = sql_string(self._store.folder.resolve())
        self._connection.execute(f"set allowed_directories = [{folder}]")
        self._connection.execute("set enable_external_access = false")
        self._connection.execute("set lock_configuration = true")


def _needed(names: list[str]) -> list[str]:
    """Return `names` and what plain views among them read, each after what it reads.

    A stored relation is read back and not computed again, so what it reads is not needed.
    """
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            if not _is_stored(name):
                for source in sorted(sources(name)):
                    if source in load_views() or _is_stored(source):
                        visit(source)
            found[name] = None

    for name in names:
        visit(name)
    return list(found)


def _is_stored(name: str) -> bool:
    return name in STORED_TABLES or (name in load_views() and load_views()[name].keep == "store")


def _columns(name: str) -> dict[str, str]:
    if name in STORED_TABLES:
        return BASE_TABLES[name]
    return {column.name: column.type for column in load_views()[name].contract.columns}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())
