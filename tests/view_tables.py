"""Views computed over tables whose rows a test writes by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from trace_sql.analysis import create_table
from trace_sql.base_tables import BASE_TABLES
from trace_sql.macros import macro_names, make_macros
from trace_sql.views import load_views, ordered, render, sources


def columns(table: str) -> dict[str, str]:
    """Return the columns of a base table or view with their types."""
    if table in BASE_TABLES:
        return BASE_TABLES[table]
    return {column.name: column.type for column in load_views()[table].contract.columns}


@contextlib.contextmanager
def computed(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with `targets` and what they need, over the rows of `tables`.

    A row may leave columns out, and have more than its table. Base tables that are not given
    are empty.
    """
    with contextlib.closing(duckdb.connect()) as connection:
        make_macros(connection, " ".join(macro_names()), set())
        for table in {*BASE_TABLES} - tables.keys():
            create_table(connection, table, BASE_TABLES[table], [])
        for table, rows in tables.items():
            kinds = columns(table)
            listed = [[row.get(column) for column in kinds] for row in rows]
            create_table(connection, table, kinds, listed)
        for name in between(targets, tables.keys()):
            connection.execute(f"create table {name} as {render(load_views()[name], {})}")
        yield connection


def between(targets: Sequence[str], given: Collection[str]) -> list[str]:
    """Return the views that `targets` need and that are not given, in order."""
    needed: set[str] = set()

    def visit(name: str) -> None:
        if name in load_views() and name not in given and name not in needed:
            needed.add(name)
            for source in sources(name):
                visit(source)

    for target in targets:
        visit(target)
    return [view.name for view in ordered(targets) if view.name in needed]


def rows_of(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return the rows of a query by column."""
    cursor = connection.execute(sql, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
