"""Statements that were parsed: each takes the engine a millisecond, and can be run again.

What will be run is foreseen, and parsed while a small file is flattened, which the engine does on
one thread and leaves a core idle. What was not foreseen is parsed when it is first run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from trace_sql.errors import TraceSqlError

if TYPE_CHECKING:
    from duckdb import Statement

    from trace_sql import engine

_MOST = 1000
"""Statements kept; a trace needs about a hundred, and those of one model need the same."""

_foreseen: list[Callable[[], Iterable[str]]] = []
_parsed: dict[str, Statement] = {}


def foresee(texts: Callable[[], Iterable[str]]) -> None:
    """Say what statements will be run if a trace is flattened next, in which order.

    It holds until then, or until something else is foreseen.
    """
    _foreseen[:] = [texts]


def parse_foreseen() -> None:
    """Parse what is foreseen, beside what the caller does next."""
    if _foreseen:
        threading.Thread(target=_parse, args=[_foreseen.pop()]).start()


def parsed(connection: engine.DuckDBPyConnection, text: str) -> Statement:
    """Return the one statement that `text` is, for any connection to run.

    Raises the engine's error where it is none.
    """
    found = _parsed.get(text)
    if found is None:
        (found,) = connection.extract_statements(text)
        if len(_parsed) >= _MOST:
            _parsed.clear()
        _parsed[text] = found
    return found


def _parse(texts: Callable[[], Iterable[str]]) -> None:
    from trace_sql import engine

    # What is wrong with a statement, or with what leads to it, is said where it is run.
    try:
        with closing(engine.cursor()) as cursor:
            for text in texts():
                parsed(cursor, text)
    except (TraceSqlError, engine.Error):
        return
