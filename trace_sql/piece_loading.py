"""Pieces of an event list on their way through DuckDB into tables and Parquet files."""

from __future__ import annotations

import struct
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

    To load what would let the engine scan a stream takes longer than to parse a small file.
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
    batch_bytes: int,
) -> int:
    """Write a Parquet file of events while the pieces come in; return their number.

    The engine orders rows by the batch they come from, at a price for each, and holds all of a
    batch, split, in memory: pieces go to it in batches of `batch_bytes` or somewhat more.
    """
    # The package, not only the engine, lets it scan what pyarrow makes.
    import duckdb  # noqa: F401
    import pyarrow as pa

    schema = pa.schema([("piece", pa.string_view())])

    def batches() -> Iterator[Any]:
        for batch in _joined(pieces, batch_bytes):
            buffers = [pa.py_buffer(one) for one in (_views(batch), *batch)]
            # Not copied, nor looked at: the engine proves that it is UTF-8, when it parses it.
            column = pa.Array.from_buffers(pa.string_view(), len(batch), [None, *buffers])
            yield pa.record_batch([column], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    connection.register("piece_stream", reader)
    try:
        return copy(connection, f"({select('from piece_stream')})", target)
    finally:
        connection.unregister("piece_stream")


def _joined(pieces: Iterator[bytes], batch_bytes: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= batch_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _views(texts: list[bytes]) -> bytes:
    """Return what an Arrow array of views holds beside the texts: a short one, or where it is."""
    return b"".join(
        struct.pack("=i12s", len(text), text)
        if len(text) <= 12
        else struct.pack("=i4sii", len(text), text, number, 0)
        for number, text in enumerate(texts)
    )
