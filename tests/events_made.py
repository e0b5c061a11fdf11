"""Events made by hand, one at a time, and what tests ask of a trace of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conftest import Analysed

US = 1000
Event = dict[str, Any]
Load = Callable[..., Analysed]


def kernel(name: str, ts: Any, dur: Any, correlation: Any = None, **other: Any) -> Event:
    """A kernel; `device`, `stream`, `pid`, `cat` and `external` may be said."""
    device, stream = other.pop("device", 0), other.pop("stream", 7)
    args = {"device": device, "stream": stream, "correlation": correlation}
    args["External id"] = other.pop("external", None)
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": ts}
    args = {key: value for key, value in args.items() if value is not None}
    return {**event, "dur": dur, "args": args, **other}


def call(ts: Any, correlation: Any, name: str = "cudaLaunchKernel", **other: Any) -> Event:
    """A host call of 5 us."""
    args = {"correlation": correlation, "External id": other.pop("external", None)}
    args = {key: value for key, value in args.items() if value is not None}
    event = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 900, "tid": 900, "ts": ts}
    return {**event, "dur": 5, "args": args, **other}


def operator(name: str, ts: Any, dur: Any, external: int | None = None, **other: Any) -> Event:
    args = {} if external is None else {"External id": external}
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 900, "tid": 900, "ts": ts}
    return {**event, "dur": dur, "args": args, **other}


def arrow(phase: str, number: Any, ts: Any, pid: Any, tid: Any) -> Event:
    return {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, "ts": ts} | {
        "pid": pid,
        "tid": tid,
    }


def one(trace: Analysed, view: str) -> dict[str, Any]:
    (row,) = trace.rows(f"from {view}")
    return row


def oddities(trace: Analysed) -> dict[str, int]:
    return {row["oddity"]: row["n"] for row in trace.rows("from trace_oddities")}


def flaws(trace: Analysed) -> dict[str, str | None]:
    return {row["name"]: row["flaw"] for row in trace.rows("select name, flaw from activities")}


def linked(trace: Analysed) -> dict[str, str]:
    """Names of kernels and of what launched them."""
    rows = trace.rows("select name, launch_name from kernels where launch_event_id is not null")
    return {row["name"]: row["launch_name"] for row in rows}
