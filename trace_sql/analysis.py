"""The analysis of a trace: views computed when first asked for, kept as Parquet by its events."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from trace_sql import engine
from trace_sql.background import Background
from trace_sql.base_tables import BASE_TABLES, HARDWARE
from trace_sql.errors import TraceSqlError
from trace_sql.events import FACT_COLUMNS, FLAT_EVENTS, FLAT_FACTS, FLAT_LOSSES
from trace_sql.literal import sql_string
from trace_sql.macros import make_macros
from trace_sql.plan import fingerprint, make_plan
from trace_sql.results import Results, Rows
from trace_sql.side_by_side import side_by_side
from trace_sql.statements import parsed
from trace_sql.store import Settings, Store, TraceEntry
from trace_sql.views import View, load_views, ordered, sources
from trace_sql.work_folder import make_work_folder

STORED_TABLES = ("trace_settings", "trace_columns")
"""Parameter tables that plain views read beside the stored ones."""

_SMALL = 8 << 20
"""Bytes of events.parquet up to which most of a query's cost is planning."""


class Analysis:
    """A trace in a workspace, where what is asked for becomes a table or a view.

    `made` has the names of the relations there, `raw` what makes those of the flattened trace
    where they are read. What was stored before is a view of its file; what is computed is a table
    and is being written until `close`.
    """

    def __init__(
        self, store: Store, entry: TraceEntry, settings: Settings, rows: Mapping[str, Rows]
    ) -> None:
        self._results = Results(entry, settings, rows)
        self._rows = rows
        self.made: set[str] = set()
        self._store = store
        self._entry = entry
        self._settings = settings
        self._small = True
        self._templates: Mapping[str, str] | None = None
        self._writer = Background()
        self._cursor: engine.DuckDBPyConnection | None = None
        flat = None if settings.capture else store.take_flat(entry.trace_id)
        self.workspace = flat or engine.Workspace()
        self.connection = self.workspace.connection
        if flat is not None:
            engine.expect_little(True)
            selects = {
                "raw_events": f"select *, rowid as event_id from {FLAT_EVENTS}",
                "raw_losses": f"from {FLAT_LOSSES}",
                "raw_facts": f"from {FLAT_FACTS}",
            }
        else:
            selects = self._of_files()
        self.raw = RawRelations(self.connection, selects)

    def _of_files(self) -> dict[str, str]:
        """Return the SELECTs of the stored files of the trace."""
        self._store.settle()
        entries = [self._entry]
        if self._settings.capture is not None:
            entries.append(self._store.entry(self._settings.capture))
        self._small = sum(entry.events_path.stat().st_size for entry in entries) <= _SMALL
        engine.expect_little(self._small)
        paths = ", ".join(sql_string(entry.events_path) for entry in entries)
        losses = ", ".join(sql_string(entry.losses_path) for entry in entries)
        facts = ", ".join(sql_string(entry.facts_path) for entry in entries)
        return {
            "raw_events": "select *, file_row_number as event_id"
            f" from read_parquet([{paths}], file_row_number = true)",
            "raw_losses": f"from read_parquet([{losses}])",
            "raw_facts": f"select {', '.join(FACT_COLUMNS)} from read_parquet([{facts}])",
        }

    def provide(self, names: Sequence[str], unless: str | None = None) -> None:
        """Make the stored views and tables `names`, and whatever lies on the way to them.

        Where `unless`, one of them, has rows, some of the others may not be made; they can be asked
        for later. Raises what `parameters` raises, and TraceSqlError where the store cannot be
        written.
        """
        if unless is not None and unless in self.made and _has_rows(self.connection, unless):
            return
        with self._writing():
            if any(not self._is_stored(name) for name in names if name not in self.made):
                self._make_parameters()
            for name in STORED_TABLES:
                if name in names and name not in self.made:
                    self._view_result(self.connection, name)
                    self.made.add(name)
            views = self._to_make([name for name in names if name in load_views()])
            self._make_hardware(views)
            for view in views:
                if not self._is_stored(view.name):
                    self.raw.create(view.reads)
            make_macros(self.connection, " ".join(view.text for view in views), self.made)

            def make(connection: engine.DuckDBPyConnection, view: View) -> bool:
                self._make(connection, view)
                self.made.add(view.name)
                return view.name != unless or not _has_rows(connection, unless)

            side_by_side(self.workspace.cursor, views, make, unless)

    def close(self) -> None:
        """Wait until all is written and drop the workspace; raises TraceSqlError as `provide`."""
        try:
            with self._writing():
                self._writer.finish()
            self._store.settle()
        finally:
            if self._cursor is not None:
                self._cursor.close()
            self.workspace.close()

    def _make_parameters(self) -> None:
        """Make the parameter tables and get the SQL of the templates, once."""
        if self._templates is not None:
            return
        plan = make_plan(self._entry.trace_id, self._settings)
        self._templates = plan.sql
        if not self._small and not engine.spills():
            engine.spill(make_work_folder(self._store.tmp))
        self._writer.do(self._make_folder)
        for table, rows in plan.rows.items():
            if table not in self.made:
                create_table(self.connection, table, BASE_TABLES[table], rows)
                self.made.add(table)
                if table in STORED_TABLES and not self._is_stored(table):
                    self._write(table)

    def _make_hardware(self, views: Sequence[View]) -> None:
        """Make the tables of HARDWARE that `views` read."""
        for table in HARDWARE:
            read = any(table in sources(v.name) and not self._is_stored(v.name) for v in views)
            if read and table not in self.made:
                create_table(self.connection, table, BASE_TABLES[table], self._rows[table]())
                self.made.add(table)

    def _to_make(self, names: Sequence[str]) -> list[View]:
        """Views to make for `names`, in order; what a stored result replaces is left out."""
        views = load_views()
        found: dict[str, View] = {}

        def visit(name: str) -> None:
            if name in found or name in self.made:
                return
            if not self._is_stored(name):
                for source in sorted(sources(name) & views.keys()):
                    visit(source)
            found[name] = views[name]

        for name in names:
            visit(name)
        return list(found.values())

    def _make(self, connection: engine.DuckDBPyConnection, view: View) -> None:
        if self._is_stored(view.name):
            self._view_result(connection, view.name)
            return
        connection.execute(parsed(connection, creation(view, self._templates)))
        if view.keep == "store":
            self._write(view.name)

    def _view_result(self, connection: engine.DuckDBPyConnection, name: str) -> None:
        source = sql_string(self._results.path(name))
        connection.execute(f"create view {name} as from read_parquet({source})")

    def _is_stored(self, name: str) -> bool:
        return self._results.holds(name)

    def _make_folder(self) -> None:
        """Make the folder of results; remove those of other versions, which nobody reads again."""
        self._store.settle()
        folder = self._results.folder
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.glob("[0-9a-f]*"):
            if not other.name.startswith(fingerprint()):
                shutil.rmtree(other, ignore_errors=True)

    def _write(self, name: str) -> None:
        """Have one relation written whole, without the rows of a capture trace beside it."""
        rows = f"from {name} where trace_id = {sql_string(self._entry.trace_id)}"
        target = self._results.path(name)
        work = target.parent / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"

        def write() -> None:
            if self._cursor is None:
                self._cursor = self.workspace.cursor()
            try:
                target.parent.mkdir(exist_ok=True)
                self._cursor.execute(f"copy ({rows}) to {sql_string(work)} (format parquet)")
                work.replace(target)
            finally:
                work.unlink(missing_ok=True)

        self._writer.do(write)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, engine.IOException) as error:
            raise TraceSqlError(
                f"{self._store.folder}: store cannot be written ({error}); free space or set "
                "TRACE_SQL_STORE to another folder"
            ) from error


class RawRelations:
    """Views of the flattened trace, by name and SELECT, that are made when something reads them.

    The engine reads the foot of a file for that, which takes 15 ms where it has a million events.
    """

    def __init__(self, connection: engine.DuckDBPyConnection, selects: Mapping[str, str]) -> None:
        self._connection = connection
        self._selects = dict(selects)

    def create(self, names: Iterable[str]) -> None:
        """Create those of `names` that are raw relations and not there yet."""
        for name in self._selects.keys() & set(names):
            self._connection.execute(f"create view {name} as {self._selects.pop(name)}")


def analysed(
    store: Store,
    entry: TraceEntry,
    settings: Settings,
    names: Sequence[str],
    rows: Mapping[str, Rows],
) -> list[Path]:
    """Return the files that hold the stored views and tables `names` of a trace.

    What is missing is computed, and with it whatever stored view lies on the way. Raises what
    `Analysis.provide` raises.
    """
    results = Results(entry, settings, rows)
    if not all(map(results.holds, names)):
        with closing(Analysis(store, entry, settings, rows)) as analysis:
            analysis.provide(names)
    return [results.path(name) for name in names]


def creations(settings: Settings, targets: Iterable[str]) -> Iterator[str]:
    """Yield the statements that make `targets` where nothing is stored, with what they read.

    Views that a session may put on top of them come last. Raises what `parameters` raises.
    """
    plan = make_plan("", settings)
    for table, rows in plan.rows.items():
        yield _filling(table, BASE_TABLES[table]) if rows else _empty(table, BASE_TABLES[table])
    on_top = (view for view in load_views().values() if not view.keep)
    for view in (*ordered(targets), *on_top):
        yield creation(view, plan.sql)


def creation(view: View, templates: Mapping[str, str] | None = None) -> str:
    """Return the statement that makes a view, or a table where its head says so."""
    kind = "table" if view.keep else "view"
    return f"create {kind} {view.name} as {(templates or {}).get(view.name, view.text)}"


def create_table(
    connection: engine.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
) -> None:
    """Create a typed table with `rows`, which hold what JSON can hold."""
    if not rows:
        connection.execute(parsed(connection, _empty(name, columns)))
        return
    # One parameter: to bind each value takes as long as a view.
    text = json.dumps([dict(zip(columns, row, strict=True)) for row in rows])
    connection.execute(parsed(connection, _filling(name, columns)), [text])


def _empty(name: str, columns: Mapping[str, str]) -> str:
    return f"create table {name} ({', '.join(f'{column} {columns[column]}' for column in columns)})"


def _filling(name: str, columns: Mapping[str, str]) -> str:
    """Return the statement that makes a table of its rows as JSON, its one parameter."""
    kinds = sql_string(json.dumps([dict(columns)]))
    listed = ", ".join(f"one.{column}" for column in columns)
    return (
        f"create table {name} as select {listed}"
        f" from (select unnest(from_json(?::VARCHAR, {kinds})) as one)"
    )


def _has_rows(connection: engine.DuckDBPyConnection, name: str) -> bool:
    return connection.execute(f"select 1 from {name} limit 1").fetchone() is not None
