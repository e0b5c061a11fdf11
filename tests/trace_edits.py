"""A trace read from its file, changed in one way, and written again; every digit is kept."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Trace = dict[str, Any]
Edit = Callable[[Trace], Trace]

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_IDS = ("correlation", "External id", "Python id", "Python parent id", "Ev Idx")


def read(path: Path) -> Trace:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    trace: Trace = json.loads(text, parse_float=Decimal)
    return trace


def save(trace: Trace, path: Path) -> Path:
    # json has no way to write a Decimal but as text, which loses its quotes here.
    text = json.dumps(trace, default=lambda number: f"\x00{number:f}\x00")
    path.write_text(re.sub(r'"\\u0000(.*?)\\u0000"', r"\1", text), encoding="utf-8")
    return path


def timed(trace: Trace) -> Iterator[Event]:
    """Yield the events whose time is one of the trace's own clock."""
    return (event for event in trace["traceEvents"] if event["ph"] != "M" and "ts" in event)


def activities(trace: Trace) -> list[Event]:
    """Return kernels, copies and fills in order of time."""
    found = [event for event in timed(trace) if event.get("cat") in WORK]
    return sorted(found, key=lambda event: event["ts"])


def span(events: Sequence[Event]) -> tuple[Decimal, Decimal]:
    """Return the first begin and the last end."""
    last = max(event["ts"] + event.get("dur", 0) for event in events)
    return Decimal(min(event["ts"] for event in events)), Decimal(last)


def shifted(us: str) -> Edit:
    """All happens later."""

    def edit(trace: Trace) -> Trace:
        for event in timed(trace):
            event["ts"] += Decimal(us)
        return trace

    return edit


def slower(factor: int | Decimal) -> Edit:
    """Every time and duration is `factor` times as long, so that nothing overlaps anew."""

    def edit(trace: Trace) -> Trace:
        for event in timed(trace):
            event["ts"] *= factor
            if "dur" in event:
                event["dur"] *= factor
        return trace

    return edit


def ranged(*names: str) -> Edit:
    """Ranges around everything: of the thread that launches, and of the device."""

    def edit(trace: Trace) -> Trace:
        begin, end = span(list(timed(trace)))
        threads = [event for event in timed(trace) if event.get("cat", "").endswith("runtime")]
        places = {"user_annotation": threads[0], "gpu_user_annotation": activities(trace)[-1]}
        for wider, name in enumerate(names, 5):
            for category, place in places.items():
                trace["traceEvents"].append(
                    {
                        **{"ph": "X", "cat": category, "name": name, "ts": begin - wider},
                        **{"dur": end - begin + 2 * wider, "pid": place["pid"]},
                        **{"tid": place["tid"], "args": {}},
                    }
                )
        return trace

    return edit


def twice(trace: Trace) -> Trace:
    """All happens again behind its end, under ids of its own."""
    begin, end = span(list(timed(trace)))
    return _joined(trace, [shifted(str(end - begin + 1))(_renumbered(copy.deepcopy(trace)))])


def of_ranks(trace: Trace) -> Trace:
    """Two ranks in one file, as SGLang merges them: pids carry a label, ids occur twice."""
    ranks = [copy.deepcopy(trace) for _ in range(2)]
    for rank, one in enumerate(ranks):
        for event in one["traceEvents"]:
            event["pid"] = f"[TP0{rank}] {event['pid']}"
    return _joined(ranks[0], [shifted("3")(ranks[1])])


def _joined(trace: Trace, others: Sequence[Trace]) -> Trace:
    events = [event for one in (trace, *others) for event in one["traceEvents"]]
    return {**trace, "traceEvents": events}


def _renumbered(trace: Trace) -> Trace:
    for event in trace["traceEvents"]:
        args = event.get("args", {})
        args.update({key: args[key] + 10**6 for key in _IDS if isinstance(args.get(key), int)})
        if isinstance(event.get("id"), int):
            event["id"] += 10**6
    return trace


def renamed(name: Callable[[str], str]) -> Edit:
    """Kernels have other names."""

    def edit(trace: Trace) -> Trace:
        for event in activities(trace):
            event["name"] = name(event["name"])
        return trace

    return edit


def halved(pattern: str) -> Edit:
    """Kernels of such names are two, one right behind the other, in the same time."""

    def edit(trace: Trace) -> Trace:
        launches = {
            event["args"]["correlation"]: event
            for event in timed(trace)
            if str(event.get("cat")).endswith("runtime") and "correlation" in event["args"]
        }
        more = []
        for event in activities(trace):
            if re.search(pattern, event["name"]):
                launch = launches[event["args"]["correlation"]]
                half = round(Decimal(event["dur"]) / 3, 3)
                more += [copy.deepcopy(launch), copy.deepcopy(event)]
                for one in more[-2:]:
                    one["args"]["correlation"] += 10**6
                more[-1] |= {"ts": event["ts"] + half, "dur": event["dur"] - half}
                event["dur"] = half
        assert more
        return _joined(trace, [{"traceEvents": more}])

    return edit


def in_order(order: Sequence[int], pattern: str) -> Edit:
    """Stretches of work, each up to the next kernel of such a name, change places in time."""

    def edit(trace: Trace) -> Trace:
        line = activities(trace)
        begins = [event["ts"] for event in line if re.search(pattern, event["name"])]
        assert len(begins) > max(order)
        stretches = [
            [event for event in line if one <= event["ts"] < other]
            for one, other in zip(begins, begins[1:], strict=False)
        ]
        lengths = [other - one for one, other in zip(begins, begins[1:], strict=False)]
        at = begins[0]
        for number in order:
            for event in stretches[number]:
                event["ts"] += at - begins[number]
            at += lengths[number]
        return trace

    return edit


def called(pattern: str, *changes: Callable[[dict[str, Any]], None]) -> Edit:
    """Operators of such names are called with other arguments, each by a change of its own."""

    def edit(trace: Trace) -> Trace:
        hit = [
            event
            for event in timed(trace)
            if event.get("cat") == "cpu_op" and re.search(pattern, event["name"])
        ]
        for event, change in zip(sorted(hit, key=lambda one: one["ts"]), changes, strict=True):
            change(event["args"])
        return trace

    return edit
