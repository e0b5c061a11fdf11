"""The formulas of sql/macros: functions of SQL, created where a view or a query names them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trace_sql.resources import data_folder
from trace_sql.statements import parsed

if TYPE_CHECKING:
    from trace_sql import engine


@cache
def macro_names() -> frozenset[str]:
    """Return the names of all macros: each is a file of that name."""
    return frozenset(path.stem for path in _folder().glob("[!.]*.sql"))


def macros_in(sql: str) -> list[str]:
    """Return the macros that `sql` names, each after those that it uses itself.

    One whose name is a part of another word is among them: to have it there does no harm.
    """
    found: dict[str, None] = {}

    def visit(name: str, users: frozenset[str]) -> None:
        if name not in found and name not in users:
            for used in _named_in(_body(name)):
                visit(used, users | {name})
            found[name] = None

    for name in _named_in(sql.lower()):
        visit(name, frozenset())
    return list(found)


@cache
def macro_sql(name: str) -> str:
    """Return the statement that creates a macro, with the comment that documents it."""
    return (_folder() / f"{name}.sql").read_text(encoding="utf-8")


def make_macros(connection: engine.DuckDBPyConnection, sql: str, made: set[str]) -> None:
    """Create the macros that `sql` needs and that `made`, which grows, does not have."""
    for name in macros_in(sql):
        if name not in made:
            made.add(name)
            connection.execute(parsed(connection, macro_sql(name)))


def _body(name: str) -> str:
    """Return what the macro stands for."""
    return macro_sql(name).partition("create macro ")[2].partition(" as\n")[2]


def _named_in(sql: str) -> list[str]:
    return sorted(name for name in macro_names() if name in sql)


def _folder() -> Path:
    return Path(data_folder("sql")) / "macros"
