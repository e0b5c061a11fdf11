"""A prefix of an ingest: `stages.py STAGE TRACE OUT`, where each stage does all before it too.

start loads Python and the engine; read decompresses, counts and hashes; cut looks for pieces;
parse makes the columns of events and throws them away; write is `flatten`.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from trace_sql import engine
from trace_sql.document import Document
from trace_sql.event_sql import epoch_of, quick_sql
from trace_sql.flatten import flatten
from trace_sql.losses import Losses
from trace_sql.source import Source


def start() -> None:
    engine.connect().close()


def read(path: Path) -> None:
    source = Source(path)
    while source.read():
        pass


def document(path: Path, out: Path) -> Document:
    return Document(Source(path), Losses(out / "losses.json"))


def cut(path: Path, out: Path) -> None:
    for _ in document(path, out).pieces():
        pass


def parse(path: Path, out: Path) -> None:
    import duckdb
    import pyarrow as pa

    schema = pa.schema([("piece", pa.string())])
    read = document(path, out)
    pieces = read.pieces()
    first = next(pieces)
    batches = (
        pa.record_batch([pa.array([piece], type=pa.string())], schema=schema)
        for piece in itertools.chain([first], pieces)
    )
    rows = quick_sql("", "from pieces", read.separator, epoch=epoch_of(first))
    with duckdb.connect(config={"threads": "2"}) as connection:
        connection.register("pieces", pa.RecordBatchReader.from_batches(schema, batches))
        connection.execute(f"select count(columns(*)) from ({rows})").fetchall()


def main(stage: str, path: Path, out: Path) -> None:
    if stage == "start":
        start()
    elif stage == "read":
        read(path)
    elif stage == "cut":
        cut(path, out)
    elif stage == "parse":
        parse(path, out)
    else:
        flatten(path, out, trace_id="0", name="made")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
