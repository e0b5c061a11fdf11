"""The analysis of one trace: its views computed once and kept as Parquet beside its events.

    <trace folder>/views/<key>/<view>.parquet

The key covers everything the result depends on: the settings, the SQL, the profiles, the version
and the engine. A result of anything else has another key, so a stale one is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from trace_sql import __version__
from trace_sql.base_tables import BASE_TABLES
from trace_sql.errors import TraceSqlError
from trace_sql.events import FACT_COLUMNS
from trace_sql.resources import data_folder
from trace_sql.store import Settings, Store, TraceEntry
from trace_sql.views import View, load_views, ordered, render

STORED_TABLES = ("trace_settings", "trace_columns")
"""Parameter tables that reports read beside the stored views."""

_SPOKEN = ("run", "tags", "name", "config_path", "phase")
"""Settings that no stored view depends on."""


def stored_views() -> list[View]:
    """Return the views that are written to the store."""
    return [view for view in load_views().values() if view.keep == "store"]


def analysed(store: Store, entry: TraceEntry, settings: Settings) -> Path:
    """Return the folder of the trace's stored views under `settings`, computing it if need be.

    Raises what `parameters` raises, and TraceSqlError where the store cannot be written.
    """
    folder = entry.folder / "views" / _key(settings)
    if not folder.is_dir():
        _compute(store, entry, settings, folder)
    return folder


@cache
def _fingerprint() -> str:
    import duckdb

    digest = hashlib.blake2b(f"{__version__} {duckdb.__version__}".encode(), digest_size=8)
    for name, pattern in (("sql", "*/*.sql"), ("profiles", "*.toml")):
        for path in sorted(data_folder(name).glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _key(settings: Settings) -> str:
    given = {key: value for key, value in settings.given().items() if key not in _SPOKEN}
    text = json.dumps(given, sort_keys=True)
    return f"{_fingerprint()}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def _compute(store: Store, entry: TraceEntry, settings: Settings, folder: Path) -> None:
    import duckdb

    entries = [entry]
    if settings.capture is not None:
        entries.append(store.entry(settings.capture))
    with contextlib.closing(duckdb.connect()) as connection:
        provide(connection, entries, settings)
        targets = [view.name for view in stored_views()]
        work = entry.folder / "views" / f".{os.getpid()}.{os.urandom(4).hex()}"
        try:
            work.mkdir(parents=True)
            for name in (*targets, *STORED_TABLES):
                # One trace at a time: the capture trace beside it has its own place.
                connection.execute(
                    f"copy (from {name} where trace_id = '{entry.trace_id}') "
                    f"to '{_quoted(work / name)}.parquet' (format parquet)"
                )
            _drop_stale(folder)
            with contextlib.suppress(OSError):
                work.rename(folder)
            if not folder.is_dir():
                raise OSError(f"{folder} could not be put in place")
        except (OSError, duckdb.IOException) as error:
            raise TraceSqlError(
                f"{store.folder}: store cannot be written ({error}); free space or set "
                "TRACE_SQL_STORE to another folder"
            ) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)


def provide(connection: Any, entries: list[TraceEntry], settings: Settings) -> None:
    """Create base tables and every view a stored view needs, kept ones as tables."""
    from trace_sql.parameters import parameters

    given = parameters(entries[0].trace_id, settings)
    for table, columns in BASE_TABLES.items():
        if table in given.rows:
            create_table(connection, table, columns, given.rows[table])
    paths = ", ".join(f"'{_quoted(entry.events_path)}'" for entry in entries)
    facts = ", ".join(f"'{_quoted(entry.facts_path)}'" for entry in entries)
    connection.execute(
        "create view raw_events as select *, file_row_number as event_id "
        f"from read_parquet([{paths}], file_row_number = true)"
    )
    connection.execute(
        f"create table raw_facts as select {', '.join(FACT_COLUMNS)} from read_parquet([{facts}])"
    )
    for view in ordered(view.name for view in stored_views()):
        kind = "table" if view.keep else "view"
        connection.execute(f"create {kind} {view.name} as {render(view, given.values)}")


def create_table(
    connection: Any, name: str, columns: dict[str, str], rows: list[tuple[Any, ...]]
) -> None:
    """Create a typed table with `rows`."""
    listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    connection.execute(f"create table {name} ({listed})")
    if rows:
        marks = ", ".join("(" + ", ".join("?" * len(columns)) + ")" for _ in rows)
        values = [value for row in rows for value in row]
        connection.execute(f"insert into {name} values {marks}", values)


def _drop_stale(folder: Path) -> None:
    """Remove results of other versions; they can never be read again."""
    current = _fingerprint()
    for other in folder.parent.glob("[0-9a-f]*"):
        if not other.name.startswith(current):
            shutil.rmtree(other, ignore_errors=True)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
