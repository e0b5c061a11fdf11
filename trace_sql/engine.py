"""The DuckDB engine: what every module of ours imports instead of the package `duckdb`.

`import duckdb` first loads the package's relation and expression API, which nothing here uses
and which costs each command 0.1 s; the engine itself is the extension module below it. A database
costs 20 ms to open, so a process has one, and whoever needs tables gets a catalog in it.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import shutil
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from trace_sql.literal import sql_string

if TYPE_CHECKING:
    from duckdb import (
        DuckDBPyConnection,
        Error,
        IOException,
        OutOfMemoryException,
        StatementType,
        __version__,
        connect,
    )

__all__ = [
    "DuckDBPyConnection",
    "Error",
    "IOException",
    "OutOfMemoryException",
    "StatementType",
    "Workspace",
    "__version__",
    "connect",
    "cursor",
    "expect_little",
    "open_database",
    "open_early",
    "spill",
    "spills",
    "take_database",
]

if not TYPE_CHECKING:
    try:
        import _duckdb as _engine
    except ImportError:
        import duckdb as _engine
    globals().update({name: getattr(_engine, name) for name in __all__ if hasattr(_engine, name)})

_FOR_LARGE = (
    "aggregate_reuse",
    "common_aggregate",
    "common_subplan",
    "cte_filter_pusher",
    "duplicate_groups",
    "filter_pullup",
    "grouping_sets",
    "join_elimination",
    "join_filter_pushdown",
    "partial_aggregate_pushdown",
    "projection_placement",
    "projection_pullup",
    "redundant_order_keys",
    "self_join_aggregate",
    "statistics_propagation",
    "window_self_join",
)
"""Optimizers that cost more than they save where tables are small (`duckdb_optimizers()`)."""

_opening = threading.Lock()
_opened: list[DuckDBPyConnection] = []
_used: list[bool] = []
_little = [False]
_spill: list[Path] = []
_numbers = itertools.count()


def open_database() -> DuckDBPyConnection:
    """Open a database in memory for queries over views."""
    connection = connect()
    connection.execute("set enable_progress_bar = false")
    # Where it expects few rows the engine compares all with all instead of sorting; its guesses
    # at what comes out of our steps can be too low by a factor of thousands.
    connection.execute("set global asof_loop_join_threshold = 0")
    connection.execute("set global nested_loop_join_threshold = 0")
    return connection


def take_database() -> DuckDBPyConnection:
    """Return a database for the caller alone: the one opened early, if nobody uses that yet."""
    with _opening:
        if _opened and not _used:
            return _opened.pop()
    return open_database()


def _open() -> None:
    with _opening:
        if not _opened:
            _opened.append(open_database())


def _database() -> DuckDBPyConnection:
    with _opening:
        _used[:] = [True]
    _open()
    return _opened[0]


def cursor() -> DuckDBPyConnection:
    """Return a further connection to the process's database."""
    return _database().cursor()


def open_early() -> None:
    """Open the process's database beside what the caller does next.

    Where that fails nothing is said: whoever needs the database tries again.
    """

    def work() -> None:
        with contextlib.suppress(Exception):
            _open()

    if not _opened:
        # Not a daemon: the interpreter must not end while the engine returns to it.
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=work).start()


def expect_little(little: bool) -> None:
    """Have the process's database plan for tables so small that planning is most of the cost.

    Then a query gets one thread, because to hand tiny tasks to others adds a third, and is not
    looked through for what makes only large ones quicker, which saves a tenth.
    """
    if _little == [little]:
        return
    database = _database()
    known = database.execute("select name from duckdb_optimizers()").fetchall() if little else []
    skipped = ",".join(name for (name,) in known if name in _FOR_LARGE)
    database.execute("set threads = 1" if little else "reset threads")
    database.execute(f"set global disabled_optimizers = '{skipped}'")
    _little[:] = [little]


def spills() -> bool:
    """Say whether `spill` was called."""
    return bool(_spill)


def spill(folder: Path) -> None:
    """Have the process's database keep to 1 GB and put the rest into `folder`, once and for all.

    The folder goes with the process: the engine cannot be given another one.
    """
    database = _database()
    limit = database.execute("select current_setting('memory_limit')").fetchall()[0][0]
    if limit.endswith(("GiB", "TiB")):
        database.execute("set memory_limit = '1GB'")
    database.execute(f"set temp_directory = {sql_string(folder)}")
    _spill.append(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


class Workspace:
    """An empty catalog in memory, and the connection whose tables and views are made in it.

    It is part of the process's one database. What it holds goes with `close`, or with the object.
    """

    def __init__(self) -> None:
        name = f"workspace{next(_numbers)}"
        self.connection = cursor()
        self.connection.execute(f"attach ':memory:' as {name}")
        self.connection.execute(f"use {name}")
        self._name = name
        self._drop = weakref.finalize(self, _drop, self.connection, name)
        self._drop.atexit = False

    def cursor(self) -> DuckDBPyConnection:
        """Return a further connection to the same tables, for another thread."""
        cursor = self.connection.cursor()
        cursor.execute(f"use {self._name}")
        return cursor

    def close(self) -> None:
        """Drop the catalog; its cursors must be closed."""
        self._drop()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _drop(connection: DuckDBPyConnection, name: str) -> None:
    connection.execute("use memory")
    connection.execute(f"detach {name}")
    connection.close()
