"""Text as SQL literals: the one way that names and paths get into a statement."""

from __future__ import annotations


def sql_string(text: object) -> str:
    """Return `text` (or a path) as an SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
