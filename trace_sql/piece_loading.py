"""Pieces of an event list on their way through DuckDB into tables and Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.literal import sql_string

if TYPE_CHECKING:
    from trace_sql import engine

Select = Callable[[str], str]
"""Makes the SELECT of events out of one of pieces."""


def copy(connection: engine.DuckDBPyConnection, rows: str, target: Path) -> int:
    """Write rows to a Parquet file; return their number."""
    row = connection.execute(
        f"copy {rows} to {sql_string(target)}"
        " (format parquet, parquet_version v1, compression zstd, compression_level 1,"
        " row_group_size 30720, dictionary_size_limit 1000, write_bloom_filter false)"
    ).fetchone()
    return int(row[0]) if row else 0


def write_pieces(folder: Path, pieces: Iterator[bytes]) -> str:
    """Write the pieces of a small file to `folder`; return the SELECT that reads them.

    The engine reads them on all cores and holds few at once, and to load what would let it scan a
    stream takes longer than to parse a small file.
    """
    paths: list[Path] = []
    for piece in pieces:
        paths.append(folder / str(len(paths)))
        paths[-1].write_bytes(piece)
    if not paths:
        return "select content as piece from read_text([]::VARCHAR[]) limit 0"
    return f"select content as piece from read_text([{', '.join(map(sql_string, paths))}])"


def stream(
    connection: engine.DuckDBPyConnection,
    pieces: Iterator[bytes],
    select: Select,
    target: Path,
) -> int:
    """Write a Parquet file of events while the pieces come in; return their number."""
    # The package, not only the engine, lets it scan what pyarrow makes.
    import duckdb  # noqa: F401
    import pyarrow as pa

    schema = pa.schema([("piece", pa.string())])

    def batches() -> Iterator[Any]:
        # One piece a batch: DuckDB holds a whole batch, split, in memory.
        for piece in pieces:
            yield pa.record_batch([pa.array([piece.decode()], type=pa.string())], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    connection.register("piece_stream", reader)
    try:
        return copy(connection, f"({select('from piece_stream')})", target)
    finally:
        connection.unregister("piece_stream")
