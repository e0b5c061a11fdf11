"""Large traces for measuring: a stretch of events, repeated with later times and higher ids.

`python -m tests.benchmarks.traces OUT --megabytes N [--layout L] [--like TRACE]` writes one in the
memory of its stretch. The stretch is made, with operators and their shapes beside what the maker
of `fixtures` writes, or is all of a trace that is there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import queue
import re
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from fixtures import Scenario, kind, make, serving
from fixtures.frames import Event

from .layouts import LAYOUTS

KIND = "sglang_llama_nvidia"
_ID_ARGS = ("correlation", "External id", "Python id", "Python parent id")
_MARK = re.compile('"@(ts|dur|id) (-?[0-9]+)@"')
_FLUSH = 4 << 20


@dataclass(frozen=True)
class Stretch:
    """Events with times in integer ns: `rows` name processes and threads, once a file."""

    metadata: dict[str, Any]
    rows: list[Event]
    events: list[Event]


def config() -> dict[str, Any]:
    """Return the config.json of the model whose trace is made."""
    return kind(KIND).model_config()


def made() -> Stretch:
    """Make four passes of a serving engine, recorded with frames and shapes."""
    scenario = Scenario(passes=serving(cold=1, growing=1, steady=2), frames="modules")
    trace = make(config(), kind(KIND), scenario)
    events: list[Event] = []
    rows: list[Event] = []
    for event in trace.events:
        if event.get("cat") is None or event["cat"] == "Trace":
            rows.append(event)
            continue
        args = event.get("args", {})
        if event["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in args:
            number = 100_000 + 2 * args["correlation"]
            events += [_operator(event, number), _operator(event, number + 1)]
        if "correlation" in args:
            extra = {} if event["cat"] != "kernel" else {"est. achieved occupancy %": 33}
            event["args"] = {"External id": 100_001 + 2 * args["correlation"], **args, **extra}
        events.append(event)
    return Stretch(trace.metadata | {"record_shapes": 1}, rows, events)


def _operator(launch: Event, number: int) -> Event:
    """Return an operator around a launch: the outer one where `number` is even."""
    size = 128 * (1 + number % 37)
    args = {
        "External id": number,
        "Record function id": 0,
        "Concrete Inputs": ["", "", "", "False", "1e-06"],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "", "Scalar", "Scalar"],
        "Input Strides": [[size, 1], [1, size], [], [], []],
        "Input Dims": [[number % 64, size], [size, 4096], [], [], []],
        "Ev Idx": number % 100_000,
    }
    name = ("aten::linear", "aten::mm", "sgl_kernel::fused_add_rmsnorm", "aten::mul_")[
        number % 2 + 2 * (number // 2 % 3 == 0)
    ]
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": launch["pid"], "tid": launch["tid"]}
    return event | {"ts": launch["ts"], "dur": launch["dur"], "args": args}


def read(path: Path) -> Stretch:
    """Return the events of a trace file, all but those without a duration and id as rows."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    rows: list[Event] = []
    events: list[Event] = []
    for event in document.pop("traceEvents"):
        for key in ("ts", "dur"):
            if key in event:
                event[key] = int(Decimal(event[key]) * 1000)
        (rows if event.get("cat") in (None, "Trace") else events).append(event)
    return Stretch(document, rows, events)


def write(stretch: Stretch, path: Path, megabytes: float, layout_name: str = "kineto") -> None:
    """Repeat a stretch until the JSON has `megabytes`; gzip level 9, as the profiler's, if .gz."""
    layout = LAYOUTS[layout_name]
    texts: list[str] = []
    for event in stretch.events:
        texts += [layout.event(_marked(event)), layout.between]
    template = _MARK.split("".join(texts[:-1]))
    kinds, values = template[1::3], [int(digits) for digits in template[2::3]]
    fixed = template[::3]
    begin = min(event["ts"] for event in stretch.events)
    span = max(event["ts"] + event.get("dur", 0) for event in stretch.events) - begin + 1000
    step = 1 + max(value for what, value in zip(kinds, values, strict=True) if what == "id")

    def copies() -> Iterator[str]:
        size = 0
        for number in range(10**9):
            parts = [""] * (len(fixed) + len(values))
            parts[::2] = fixed
            parts[1::2] = [
                str(value + number * step)
                if what == "id"
                else _microseconds(value if what == "dur" else value + number * span)
                for what, value in zip(kinds, values, strict=True)
            ]
            copy = "".join(parts)
            yield copy
            size += len(copy)
            if size >= megabytes * 1_000_000:
                return

    def document() -> Iterator[str]:
        yield layout.head(stretch.metadata)
        for copy in copies():
            yield copy
            yield layout.between
        rows = layout.between.join(layout.event(_marked(event)) for event in stretch.rows)
        yield _MARK.sub(
            lambda match: match[2] if match[1] == "id" else _microseconds(int(match[2])), rows
        )
        yield layout.tail

    _save(document(), path)


def _marked(event: Event) -> Event:
    """Return an event whose times and ids are marks that no other text holds."""
    out: Event = {}
    for key, value in event.items():
        if key in ("ts", "dur"):
            value = f"@{key} {value}@"
        elif key == "id" and type(value) is int:
            value = f"@id {value}@"
        elif key == "args":
            value = {
                name: f"@id {one}@" if name in _ID_ARGS and type(one) is int and one > 0 else one
                for name, one in value.items()
            }
        out[key] = value
    return out


def _microseconds(ns: int) -> str:
    us, rest = divmod(ns, 1000)
    return f"{us}.{rest:03d}"


def _save(texts: Iterator[str], path: Path) -> None:
    """Write text, compressed by a second thread if the name ends in .gz."""
    waiting: queue.Queue[bytes | None] = queue.Queue(2)
    packer = zlib.compressobj(9, wbits=31) if path.name.endswith(".gz") else None

    def drain() -> None:
        with path.open("wb") as file:
            while (data := waiting.get()) is not None:
                file.write(packer.compress(data) if packer else data)
            if packer:
                file.write(packer.flush())

    writer = threading.Thread(target=drain)
    writer.start()
    held: list[str] = []
    size = 0
    for one in texts:
        held.append(one)
        size += len(one)
        if size >= _FLUSH:
            waiting.put("".join(held).encode())
            held, size = [], 0
    waiting.put("".join(held).encode())
    waiting.put(None)
    writer.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.traces", description=__doc__)
    parser.add_argument("out", type=Path, help=".json, or .json.gz to compress")
    parser.add_argument("--megabytes", type=float, default=60, help="size of the JSON")
    parser.add_argument("--layout", choices=LAYOUTS, default="kineto")
    parser.add_argument("--like", type=Path, help="a trace to repeat instead of a made one")
    args = parser.parse_args()
    write(read(args.like) if args.like else made(), args.out, args.megabytes, args.layout)


if __name__ == "__main__":
    main()
