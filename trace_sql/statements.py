"""Statements parsed beside something that leaves a core idle: each takes the engine a millisecond.

What will be run is foreseen, and parsed while a small file is flattened, which the engine does on
one thread. A statement that was not foreseen is parsed when it runs, as any is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from trace_sql.errors import TraceSqlError

if TYPE_CHECKING:
    from duckdb import Statement

_foreseen: list[Callable[[], Iterable[str]]] = []
_parsed: dict[str, Statement] = {}


def foresee(texts: Callable[[], Iterable[str]]) -> None:
    """Say what statements will be run if a trace is flattened next, in which order."""
    _foreseen[:] = [texts]


def parse_foreseen() -> None:
    """Parse what is foreseen, beside what the caller does next."""
    if _foreseen:
        threading.Thread(target=_parse, args=[_foreseen.pop()]).start()


def statement(text: str) -> Statement | str:
    """Return what runs `text`: the statement where it was parsed, else `text` itself."""
    return _parsed.pop(text, text)


def _parse(texts: Callable[[], Iterable[str]]) -> None:
    from trace_sql import engine

    # What is wrong with a statement, or with what leads to it, is said where it is run.
    try:
        with closing(engine.cursor()) as cursor:
            for text in texts():
                _parsed[text] = cursor.extract_statements(text)[0]
    except (TraceSqlError, engine.Error):
        return
