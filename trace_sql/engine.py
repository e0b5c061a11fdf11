"""The DuckDB engine: what every module of ours imports instead of the package `duckdb`.

`import duckdb` first loads the package's relation and expression API, which nothing here uses
and which costs each command 0.1 s; the engine itself is the extension module below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import (
        DuckDBPyConnection,
        Error,
        IOException,
        StatementType,
        __version__,
        connect,
    )

__all__ = [
    "DuckDBPyConnection",
    "Error",
    "IOException",
    "StatementType",
    "__version__",
    "connect",
]

if not TYPE_CHECKING:
    try:
        import _duckdb as _engine
    except ImportError:
        import duckdb as _engine
    globals().update({name: getattr(_engine, name) for name in __all__})
