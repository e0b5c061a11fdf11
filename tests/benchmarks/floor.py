"""The floor of an ingest: gunzip, cut, parse, flatten to typed columns; nothing is written.

floor.py TRACE. The fastest way known with the same parser, without any of the checks that an
ingest owes its user: what does not fit a column is lost unseen, a trace of another layout fails.
It shares no code with the package. isal gunzips in a thread of its own, a regular expression cuts
between events, DuckDB parses each piece once on two threads, straight into some 40 columns.
"""

from __future__ import annotations

import json
import queue
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
from isal import igzip

_CHUNK = 2 << 20
_PIECE = 128 << 10
"""Small enough for the caches of a processor: larger pieces are slower."""
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_LIST = re.compile(rb'^\s*(?:\[|\{(?s:.*?)"traceEvents"\s*:\s*\[)')

_TEXT = ("ph", "cat", "name", "pid", "tid", "id", "s", "bp")
_INTEGERS = (
    "device",
    "stream",
    "correlation",
    "External id",
    "Python id",
    "Python parent id",
    "Python module id",
    "Ev Idx",
    "Record function id",
    "Sequence number",
    "Fwd thread id",
    "context",
    "queued",
    "registers per thread",
    "shared memory",
    "bytes",
    "cbid",
)
_REALS = ("blocks per SM", "warps per SM", "memory bandwidth (GB/s)", "est. achieved occupancy %")
_LISTS = ("grid", "block", "Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def texts(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes, which a thread reads ahead."""
    waiting: queue.Queue[bytes] = queue.Queue(4)

    def fill() -> None:
        opener = igzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as file:
            while data := file.read(_CHUNK):
                waiting.put(data)
        waiting.put(b"")

    threading.Thread(target=fill, daemon=True).start()
    yield from iter(waiting.get, b"")


def pieces(path: str) -> Iterator[bytes]:
    chunks = texts(path)
    data = next(chunks)
    found = _LIST.match(data)
    if found is None:
        raise SystemExit("no traceEvents in the first 2 MB")
    data = data[found.end() :]
    for more in chunks:
        start = 0
        while match := _BETWEEN.search(data, start + _PIECE):
            yield b"[" + data[start : match.start() + 1] + b"]"
            start = match.end() - 1
        data = data[start:] + more
    end = re.compile(rb"\}\s*\]").search(data)
    if end is None:
        raise SystemExit("no end of traceEvents")
    yield b"[" + data[: end.start() + 1] + b"]"


def main(path: str) -> int:
    """Flatten a trace and count the values of each column; return the number of events."""
    args = dict.fromkeys(_INTEGERS, "BIGINT") | dict.fromkeys(_REALS, "DOUBLE")
    args |= dict.fromkeys(_LISTS, "JSON")
    event: dict[str, Any] = dict.fromkeys(_TEXT, "VARCHAR")
    event |= {"ts": "DECIMAL(21,3)", "dur": "DECIMAL(21,3)", "args": args}
    columns = [f"event.{key}" for key in _TEXT]
    columns += ["(event.ts * 1000)::BIGINT", "(event.dur * 1000)::BIGINT"]
    columns += [f'event.args."{key}"' for key in args]
    schema = pa.schema([("piece", pa.string())])
    batches = (
        pa.record_batch([pa.array([piece], type=pa.string())], schema=schema)
        for piece in pieces(path)
    )
    with duckdb.connect(config={"threads": "2"}) as connection:
        connection.register("pieces", pa.RecordBatchReader.from_batches(schema, batches))
        row = connection.execute(
            f"""
            select count(*), {", ".join(f"count({column})" for column in columns)}
            from (select unnest(from_json(piece, '{json.dumps([event])}')) as event from pieces)
            """
        ).fetchone()
    assert row is not None
    return int(row[0])


if __name__ == "__main__":
    print(main(sys.argv[1]))
