"""The relations that queries may name: documented views, created when a query first names them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from trace_sql import engine
from trace_sql.analysis import (
    STORED_TABLES,
    Analysis,
    RawRelations,
    analysed,
    create_table,
    creation,
)
from trace_sql.base_tables import BASE_TABLES, HARDWARE, ON_DEMAND
from trace_sql.literal import sql_string
from trace_sql.macros import make_macros
from trace_sql.results import Rows
from trace_sql.statements import parsed
from trace_sql.store import Settings, Store, TraceEntry
from trace_sql.views import load_views, public_views, roots, sources


class Session:
    """Relations on `connection`; `_provide` makes stored views and tables be there.

    `close` drops them all; it raises TraceSqlError where a result could not be written.
    """

    def __init__(
        self,
        connection: engine.DuckDBPyConnection,
        close: Callable[[], None],
        created: set[str],
        entries: list[TraceEntry],
        rows: Mapping[str, Rows],
        raw: RawRelations,
    ) -> None:
        self.connection = connection
        self._rows = rows
        self._raw = raw
        self.close = close
        # A folder that is not there yet is about to be written.
        folders = [entry.folder for entry in entries if entry.folder.is_dir()]
        self._unwritable = not all(os.access(folder, os.W_OK) for folder in folders)
        self._created = created
        create_table(
            connection,
            "raw_settings",
            BASE_TABLES["raw_settings"],
            [
                (
                    entry.trace_id,
                    entry.settings.run,
                    entry.settings.tags or {},
                    entry.settings.config_path,
                    entry.settings.paths,
                )
                for entry in entries
            ],
        )

    def _provide(self, names: list[str]) -> None:
        raise NotImplementedError

    def create_named_in(self, sql: str) -> None:
        """Create the views and macros that `sql` names, with what they read."""
        words = set(re.findall(r"[a-z_][a-z0-9_]*", sql.lower()))
        public = (*ON_DEMAND, *(view.name for view in public_views()))
        self.create([name for name in public if name in words])
        self._raw.create(words)
        make_macros(self.connection, sql, self._created)

    def create_unless(self, view: str, names: list[str]) -> None:
        """Create the stored `view`, and the stored `names` too unless it has rows of any trace."""
        self.create([view])
        if not self.connection.execute(f"select 1 from {view} limit 1").fetchone():
            self.create(names)

    def create(self, names: list[str]) -> None:
        """Create these views, in one go, with what they read."""
        needed = self._needed(names)
        stored = [name for name in needed if self._is_stored(name) and name not in self._created]
        if stored:
            self._provide(stored)
            self._created.update(stored)
        for name in needed:
            if name in self._created:
                continue
            self._created.add(name)
            if name in ON_DEMAND:
                create_table(self.connection, name, BASE_TABLES[name], self._rows[name]())
            else:
                view = load_views()[name]
                self._raw.create(view.reads)
                make_macros(self.connection, view.text, self._created)
                self.connection.execute(parsed(self.connection, creation(view)))

    def _needed(self, names: list[str]) -> list[str]:
        """Return `names` and what is computed on the way to them, each after what it reads.

        A stored relation is not computed again, so what it reads is not needed.
        """
        found: dict[str, None] = {}

        def visit(name: str) -> None:
            if name not in found:
                if name not in ON_DEMAND and not self._is_stored(name):
                    for source in sorted(sources(name)):
                        if source in load_views() or source in ON_DEMAND or _is_kept(source):
                            visit(source)
                found[name] = None

        for name in names:
            visit(name)
        return list(found)

    def _is_stored(self, name: str) -> bool:
        """Whether a relation is read from the store, and written there before.

        What reads the peaks of GPUs is computed here where that cannot be: there may always be
        another choice of them.
        """
        return _is_kept(name) and not (self._unwritable and roots(name) & set(HARDWARE))


class TraceSession(Session):
    """A trace where it is analysed: what was just computed is not read back from a file."""

    def __init__(
        self, store: Store, entry: TraceEntry, settings: Settings, rows: Mapping[str, Rows]
    ) -> None:
        self._analysis = Analysis(store, entry, settings, rows)
        one = self._analysis
        super().__init__(one.connection, one.close, one.made, [entry], rows, one.raw)

    def create_unless(self, view: str, names: list[str]) -> None:
        """As for any session, in one go: `view` comes first, but not alone."""
        self._analysis.provide([view, *names], unless=view)

    def _provide(self, names: list[str]) -> None:
        self._analysis.provide(names)


class FileSession(Session):
    """Any number of traces, each analysed on its own, over the files of the results.

    `progress` gets the number of traces analysed and of all.
    """

    def __init__(
        self,
        connection: engine.DuckDBPyConnection,
        close: Callable[[], None],
        store: Store,
        traces: Mapping[str, Settings],
        progress: Callable[[int, int], None] | None,
        rows: Mapping[str, Rows],
    ) -> None:
        store.settle()
        self._store = store
        self._traces = traces
        self._progress = progress
        entries = [store.entry(trace_id) for trace_id in traces]
        files = {
            "raw_events": [entry.events_path for entry in entries],
            "raw_losses": [entry.losses_path for entry in entries],
            "raw_facts": [entry.facts_path for entry in entries],
        }
        selects = {
            name: _of_files(BASE_TABLES[name], paths, numbered=name == "raw_events")
            for name, paths in files.items()
        }
        raw = RawRelations(connection, selects)
        super().__init__(connection, close, set(), entries, rows, raw)

    def _provide(self, names: list[str]) -> None:
        files = []
        for number, (trace_id, settings) in enumerate(self._traces.items()):
            if self._progress:
                self._progress(number, len(self._traces))
            entry = self._store.entry(trace_id)
            files.append(analysed(self._store, entry, settings, names, self._rows))
        engine.expect_little(False)
        for number, name in enumerate(names):
            select = _of_files(_columns(name), [paths[number] for paths in files])
            self.connection.execute(f"create view {name} as {select}")


def _of_files(columns: Mapping[str, str], paths: list[Path], *, numbered: bool = False) -> str:
    """Return the SELECT of Parquet files, or of no rows where there are none."""
    if not paths:
        nothing = ", ".join(f"null::{columns[column]} as {column}" for column in columns)
        return f"select {nothing} where false"
    listed = ", ".join(map(sql_string, paths))
    extra = "*, file_row_number as event_id" if numbered else "*"
    return (
        f"select {extra} from read_parquet([{listed}], file_row_number = {str(numbered).lower()})"
    )


def _columns(name: str) -> dict[str, str]:
    if name in STORED_TABLES:
        return BASE_TABLES[name]
    return {column.name: column.type for column in load_views()[name].contract.columns}


def _is_kept(name: str) -> bool:
    return name in STORED_TABLES or (name in load_views() and load_views()[name].keep == "store")
