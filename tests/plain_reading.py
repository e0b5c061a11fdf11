"""A trace and its truth, read without the code under test."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def nanoseconds(number: Any) -> int:
    """Read a time in microseconds from its digits."""
    us, _, rest = str(number).partition(".")
    return int(us) * 1000 + int((rest + "000")[:3])


def events_of(path: Path) -> list[dict[str, Any]]:
    """Read a trace without the code under test; times keep their digits."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    events: list[dict[str, Any]] = json.loads(text, parse_float=str)["traceEvents"]
    return events


def truth_of(path: Path) -> dict[str, Any]:
    name = path.name.removesuffix(".gz").removesuffix(".json") + ".truth.json"
    truth: dict[str, Any] = json.loads(path.with_name(name).read_text())
    return truth


def seconds_of_passes(path: Path, device: int = 0) -> list[tuple[float, float]]:
    """Start and end of the true passes, counted from the earliest event as Perfetto does."""
    zero = min(nanoseconds(e["ts"]) for e in events_of(path) if e["ph"] in "XBEbneiIC")
    return [
        ((one["start_ns"] - zero) / 1e9, (one["end_ns"] - zero) / 1e9)
        for one in truth_of(path)["passes"]
        if one["device"] == device
    ]
