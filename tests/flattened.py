"""Flattening as tests look at it: the rows it writes, and an independent reading by json.loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import duckdb
import pytest

from trace_sql import event_list, flatten, source

TEXT_KEYS = ("ph", "cat", "name", "pid", "tid", "id")
_FILES = ("events", "facts", "losses")

A = b'{"ph":"X","name":"a"}'
B = b'{"ph":"X","name":"b"}'
"""Two events that stand around damage, and are kept."""
U = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Flat:
    """What one document of a file became."""

    events: list[dict[str, Any]]
    facts: dict[str, Any]
    losses: list[dict[str, Any]]

    @property
    def rebuilt(self) -> list[Any]:
        return [rebuilt(row) for row in self.events]

    @property
    def kinds(self) -> list[str]:
        return [loss["kind"] for loss in self.losses]


Read = Callable[[bytes], list[Flat]]
"""Flattens all documents of a text."""


def names(flat: Flat) -> list[Any]:
    return [event.get("name") for event in flat.rebuilt]


def listed(*events: bytes) -> bytes:
    return b'{"schemaVersion": 1, "traceEvents": [%s]}' % b",\n ".join(events)


def flattened(path: Path, out: Path, document: int = 0) -> Flat:
    """Flatten a document of a file into `out`; nothing but the three files is left there."""
    out.mkdir(exist_ok=True)
    file = source.TraceFile(path, document=document)
    flat = flatten.load(file, out, trace_id="0123456789ab", name="a trace")
    if flat.workspace is not None:
        with flat.workspace:
            flat.write(out)
    assert sorted(p.name for p in out.iterdir()) == [f"{file}.parquet" for file in _FILES]
    with duckdb.connect() as connection:
        events, facts, losses = (_rows(connection, out / f"{file}.parquet") for file in _FILES)
    assert [loss["loss_no"] for loss in losses] == list(range(len(losses)))
    assert facts[0]["n_events"] == len(events)
    assert facts[0]["n_repaired"] == sum(loss["repaired"] for loss in losses)
    assert facts[0]["n_lost"] == sum(not loss["repaired"] for loss in losses)
    assert facts[0]["complete"] == (facts[0]["n_lost"] == 0)
    return Flat(events, facts[0], losses)


def both(path: Path, out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows and the facts of a file without damage."""
    flat = flattened(path, out)
    assert flat.losses == []
    return flat.events, flat.facts


def flattened_all(path: Path, out: Path) -> list[Flat]:
    """Flatten every document of a file."""
    number = count(path, out)
    return [flattened(path, out, document) for document in range(number)]


def count(path: Path, out: Path) -> int:
    out.mkdir(exist_ok=True)
    return flatten.flatten(path, out, trace_id="0123456789ab", name="a trace")


def _rows(connection: duckdb.DuckDBPyConnection, path: Path) -> list[dict[str, Any]]:
    cursor = connection.execute(
        "select * exclude file_row_number from read_parquet(?, file_row_number = true)"
        " order by file_row_number",
        [str(path)],
    )
    columns = [column[0] for column in cursor.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def rebuilt(row: dict[str, Any]) -> Any:
    """Return the event a row stands for; times in us as Decimal, pid, tid and id as text."""
    event = {key: row[key] for key in TEXT_KEYS if row[key] is not None}
    for key in ("ts", "dur"):
        if row[f"{key}_ns"] is not None:
            event[key] = Decimal(row[f"{key}_ns"]) / 1000
    if row["args"] is not None:
        event["args"] = json.loads(row["args"])
    extra = json.loads(row["extra"] or "{}")
    if not isinstance(extra, dict):
        return extra
    exact = json.loads(row["extra"] or "{}", parse_float=Decimal)
    return event | extra | {key: _time(exact[key]) for key in ("ts", "dur") if key in exact}


def _time(value: Any) -> Any:
    """Return a time as Decimal, and what is none as it is."""
    if value is None or isinstance(value, bool | list | dict):
        return value
    try:
        return Decimal(value)
    except InvalidOperation:
        return value


def expected(raw: bytes) -> list[Any]:
    """Return the events of a trace as `rebuilt` gives them; times from the digits."""
    events, exact = json.loads(raw), json.loads(raw, parse_float=Decimal)
    if isinstance(events, dict):
        events, exact = events["traceEvents"], exact["traceEvents"]
    for event, digits in zip(events, exact, strict=True):
        if not isinstance(event, dict):
            continue
        for key in ("ts", "dur"):
            if key in event:
                event[key] = _time(digits[key])
        for key in ("pid", "tid", "id"):
            if key in event:
                event[key] = str(event[key])
        # A key whose value is null is the same as no key.
        for key in [key for key in (*TEXT_KEYS, "ts", "dur", "args") if key in event]:
            if event[key] is None:
                del event[key]
    return list(events)


def write(path: Path, events: str, head: str = '{"schemaVersion": 1, ', tail: str = "}") -> Path:
    path.write_text(f'{head}"traceEvents": [{events}]{tail}', encoding="utf-8")
    return path


def cut_small(patch: pytest.MonkeyPatch, piece: int, chunk: int) -> None:
    """Cut every few events and read every few bytes, so that small files have many seams."""
    patch.setattr(event_list, "PIECE_BYTES", piece)
    patch.setattr("trace_sql.text_window.CHUNK_BYTES", chunk)


def check_at_once(patch: pytest.MonkeyPatch) -> None:
    """Have the quick reading give up, so that all is read with care."""
    patch.setattr(flatten, "quick_sql", lambda *_, **__: "select error('no')")
