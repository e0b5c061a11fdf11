"""The analysis of a trace: views computed when first asked for, kept as Parquet by its events.

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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any

from trace_sql import __version__
from trace_sql.base_tables import BASE_TABLES
from trace_sql.errors import TraceSqlError
from trace_sql.events import FACT_COLUMNS
from trace_sql.literal import sql_string
from trace_sql.resources import data_folder
from trace_sql.store import Settings, Store, TraceEntry
from trace_sql.views import View, load_views, render, sources

STORED_TABLES = ("trace_settings", "trace_columns")
"""Parameter tables that plain views read beside the stored ones."""

_SPOKEN = ("run", "tags", "name", "config_path", "phase")
"""Settings that no stored view depends on."""


def analysed(store: Store, entry: TraceEntry, settings: Settings, names: Sequence[str]) -> Path:
    """Return the folder that holds the stored views and tables `names` of a trace.

    What is missing is computed, and with it whatever stored view lies on the way. Raises what
    `parameters` raises, and TraceSqlError where the store cannot be written.
    """
    folder = entry.folder / "views" / _key(settings)
    missing = [name for name in names if not _parquet(folder, name).is_file()]
    if missing:
        _compute(store, entry, settings, folder, missing)
    return folder


@cache
def _fingerprint() -> str:
    from trace_sql import engine

    digest = hashlib.blake2b(f"{__version__} {engine.__version__}".encode(), digest_size=8)
    for name, pattern in (("sql", "*/*.sql"), ("profiles", "*.toml")):
        for path in sorted(data_folder(name).glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _key(settings: Settings) -> str:
    given = {key: value for key, value in settings.given().items() if key not in _SPOKEN}
    text = json.dumps(given, sort_keys=True)
    return f"{_fingerprint()}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def _compute(
    store: Store, entry: TraceEntry, settings: Settings, folder: Path, names: Sequence[str]
) -> None:
    from trace_sql import engine
    from trace_sql.parameters import parameters

    given = parameters(entry.trace_id, settings)
    entries = [entry]
    if settings.capture is not None:
        entries.append(store.entry(settings.capture))
    try:
        with contextlib.closing(engine.connect()) as connection:
            folder.mkdir(parents=True, exist_ok=True)
            _drop_stale(folder)
            _provide(connection, entries, given.rows)
            for table in STORED_TABLES:
                _write(connection, folder, table, entry.trace_id)
            views = _to_compute(folder, [name for name in names if name in load_views()])

            def create(view: View) -> None:
                with contextlib.closing(connection.cursor()) as cursor:
                    if _parquet(folder, view.name).is_file():
                        source = f"from {sql_string(_parquet(folder, view.name))}"
                        cursor.execute(f"create view {view.name} as {source}")
                        return
                    kind = "table" if view.keep else "view"
                    sql = render(view, given.values)
                    cursor.execute(f"create {kind} {view.name} as {sql}")
                    if view.keep == "store":
                        _write(cursor, folder, view.name, entry.trace_id)

            _side_by_side(views, create)
    except (OSError, engine.IOException) as error:
        raise TraceSqlError(
            f"{store.folder}: store cannot be written ({error}); free space or set "
            "TRACE_SQL_STORE to another folder"
        ) from error


def _side_by_side(views: Sequence[View], create: Callable[[View], None]) -> None:
    """Call `create` for each view when what it reads is there, two at a time.

    Most of a view's cost on a small trace is DuckDB's planning, which uses one core.
    """
    waiting = {view.name: view for view in views}
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(2) as pool:
        while waiting or running:
            open_names = waiting.keys() | set(running.values())
            for name in [n for n in waiting if not sources(n) & open_names]:
                running[pool.submit(create, waiting.pop(name))] = name
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                del running[future]
                future.result()


def _to_compute(folder: Path, names: Sequence[str]) -> list[View]:
    """Views to create for `names`, in order; what a stored result replaces is left out."""
    views = load_views()
    found: dict[str, View] = {}

    def visit(name: str) -> None:
        if name in found:
            return
        if not _parquet(folder, name).is_file():
            for source in sorted(sources(name) & views.keys()):
                visit(source)
        found[name] = views[name]

    for name in names:
        visit(name)
    return list(found.values())


def _provide(
    connection: Any, entries: list[TraceEntry], rows: Mapping[str, list[tuple[Any, ...]]]
) -> None:
    """Create the base tables of the traces `entries`."""
    for table, columns in BASE_TABLES.items():
        if table in rows:
            create_table(connection, table, columns, rows[table])
    paths = ", ".join(sql_string(entry.events_path) for entry in entries)
    facts = ", ".join(sql_string(entry.facts_path) for entry in entries)
    connection.execute(
        "create view raw_events as select *, file_row_number as event_id "
        f"from read_parquet([{paths}], file_row_number = true)"
    )
    connection.execute(
        f"create table raw_facts as select {', '.join(FACT_COLUMNS)} from read_parquet([{facts}])"
    )


def _write(connection: Any, folder: Path, name: str, trace_id: str) -> None:
    """Write one relation whole, without the rows of a capture trace beside it."""
    work = folder / f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    rows = f"from {name} where trace_id = {sql_string(trace_id)}"
    try:
        connection.execute(f"copy ({rows}) to {sql_string(work)} (format parquet)")
        work.replace(_parquet(folder, name))
    finally:
        work.unlink(missing_ok=True)


def _parquet(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


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
