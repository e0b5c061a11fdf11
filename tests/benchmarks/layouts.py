"""How a trace is laid out as text: Kineto's own layout, and those that other writers leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fixtures.frames import Event

_BREAKS = {
    "queued",
    "stream",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "warps per SM",
    "grid",
    "block",
    "bytes",
    "est. achieved occupancy %",
}
"""Args of an activity before which libkineto leaves the indent of lines that it joined."""


@dataclass(frozen=True)
class Layout:
    """The text before the events, of one event, between two events, and behind the last one."""

    head: Callable[[dict[str, Any]], str]
    event: Callable[[Event], str]
    between: str
    tail: str


def text(value: object) -> str:
    """Return JSON as Kineto spaces it."""
    return json.dumps(value, default=_number)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), default=_number)


def _indented(value: object) -> str:
    return json.dumps(value, indent=4, default=_number)


def _number(value: object) -> float:
    if not isinstance(value, Decimal):
        raise TypeError(type(value))
    return float(value)


def _kineto_event(event: Event) -> str:
    """Return an event as libkineto's logger writes it, line by line."""
    keys = {key: f'"{key}": {text(value)}' for key, value in event.items() if key != "args"}
    phase, cat = event.get("ph"), event.get("cat")
    if cat == "Trace":
        rows: list[tuple[str, ...]] = [("ph", "cat", "ts", "dur"), ("pid", "tid"), ("name",)]
    elif phase == "X":
        rows = [("ph", "cat", "name", "pid", "tid"), ("ts", "dur")]
    elif phase in ("s", "f"):
        rows = [("ph", "id", "pid", "tid", "ts"), ("cat", "name", "bp")]
    elif phase == "i" and cat is not None:
        rows = [("ph", "cat", "s", "name"), ("pid", "tid"), ("ts",)]
    elif phase == "i":
        rows = [("name", "ph", "s"), ("pid", "tid", "ts")]
    else:
        rows = [("name", "ph", "ts", "pid", "tid")]
    told = {key for row in rows for key in row}
    rows[-1] += tuple(key for key in keys if key not in told)
    lines = [", ".join(keys[key] for key in row if key in keys) for row in rows]
    if (args := event.get("args")) is not None:
        of_torch = cat in ("cpu_op", "user_annotation")
        lines.append(f'"args": {{\n      {_kineto_args(args, of_torch)}\n    }}')
    return "  {\n    " + ",\n    ".join(line for line in lines if line) + "\n  }"


def _kineto_args(args: dict[str, Any], of_torch: bool) -> str:
    parts: list[str] = []
    before = ""
    for key, value in args.items():
        if before == "External id":
            parts.append("," if of_torch else ",      ")
        elif before:
            parts.append(",      " if key in _BREAKS else ", ")
        parts.append(f"{text(key)}: {text(value)}")
        before = key
    return "".join(parts)


def _kineto_head(metadata: dict[str, Any]) -> str:
    keys = "".join(f"  {text(key)}: {text(value)},\n" for key, value in metadata.items())
    return f'{{\n{keys}  "traceEvents": [\n'


def _compact_head(metadata: dict[str, Any]) -> str:
    return _compact({**metadata, "traceEvents": []}).removesuffix("]}")


def _indented_head(metadata: dict[str, Any]) -> str:
    return _indented({**metadata, "traceEvents": []}).removesuffix("]\n}") + "\n"


def _indented_event(event: Event) -> str:
    return "\n".join(f"        {line}" for line in _indented(event).splitlines())


LAYOUTS = {
    "kineto": Layout(_kineto_head, _kineto_event, ",\n", "\n  ]\n}\n"),
    "indented": Layout(_indented_head, _indented_event, ",\n", "\n    ]\n}"),
    "compact": Layout(_compact_head, _compact, ",", "]}"),
    "list": Layout(lambda _: "[", _compact, ",", "]"),
    "lines": Layout(lambda _: "[\n", text, ",\n", "\n]\n"),
}
"""`indented` is json.dump(indent=4), `compact` one line without spaces; the last two bare lists."""
