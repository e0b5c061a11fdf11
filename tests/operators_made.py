"""Traces made operator by operator, as a profiler records them: nested, with shapes and kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trace_sql.database import Database
from trace_sql.store import Settings, Store

BF16, FP16, FP8, FP32 = "c10::BFloat16", "c10::Half", "c10::Float8_e4m3fn", "float"


@dataclass(frozen=True)
class Op:
    """An operator, with what it holds: operators, and kernels by name or as (name, us)."""

    name: str
    args: Mapping[str, Any]
    inside: tuple[Any, ...]


def op(
    name: str,
    *inside: Any,
    dims: Sequence[Any] | None = None,
    scalars: Mapping[int, str] | None = None,
    types: Mapping[int, str] | str = BF16,
    strides: Sequence[Any] | None = None,
    sequence: int | None = None,
) -> Op:
    """Return an operator. Tensors are bf16 unless `types` says otherwise, of one or of all;
    `scalars` are Concrete Inputs by position."""
    args: dict[str, Any] = {} if sequence is None else {"Sequence number": sequence}
    if dims is not None:
        n = max(len(dims), *(place + 1 for place in (scalars or {0: ""})))
        full = [*dims, *[[]] * (n - len(dims))]
        named = {} if isinstance(types, str) else types
        kinds = [(types if isinstance(types, str) else BF16) if one else "" for one in full]
        for place, kind in named.items():
            kinds[place] = kind
        concrete = [""] * n
        for place, text in (scalars or {}).items():
            concrete[place] = text
            kinds[place] = kinds[place] or "Scalar"
        args |= {"Input Dims": full, "Input type": kinds, "Concrete Inputs": concrete}
        if strides is not None:
            args["Input Strides"] = [*strides, *[[]] * (n - len(strides))]
    return Op(name, args, inside)


class Tape:
    """A trace of threads, in which each kernel is launched inside of its own operator."""

    def __init__(self, gpu: str | None = None, *, shapes: bool = True, kernel_us: int = 7) -> None:
        self.gpu, self.shapes, self.kernel_us = gpu, shapes, kernel_us
        self.events: list[dict[str, Any]] = []
        self.now = 1000
        self.device_now = 1_000_000
        self.launched = 0
        self.tid = 1

    def run(self, *operators: Op) -> None:
        for one in operators:
            args = dict(one.args) if self.shapes else {}
            event: dict[str, Any] = {
                "ph": "X",
                "cat": "cpu_op",
                "name": one.name,
                "pid": 1,
                "tid": self.tid,
            }
            event |= {"ts": self.now, "args": args}
            self.events.append(event)
            self.now += 1
            for part in one.inside:
                if isinstance(part, Op):
                    self.run(part)
                else:
                    self.kernel(*(part if isinstance(part, tuple) else (part,)))
            self.now += 1
            event["dur"] = self.now - event["ts"]
            self.now += 1

    def kernel(self, name: str, us: int | None = None) -> None:
        us = us or self.kernel_us
        self.launched += 1
        link = {"correlation": self.launched}
        is_copy = name.startswith("Mem")
        self.events += [
            {
                **{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1},
                **{"tid": self.tid, "ts": self.now, "dur": 1, "args": link},
            },
            {
                **{"ph": "X", "cat": "gpu_memset" if is_copy else "kernel", "name": name},
                **{"pid": 0, "tid": 7, "ts": self.device_now, "dur": us},
                "args": {**link, "device": 0, "stream": 7},
            },
        ]
        self.now += 2
        self.device_now += us + 1

    def step(self, name: str, *operators: Op) -> None:
        """Run operators inside a range."""
        event: dict[str, Any] = {
            "ph": "X",
            "cat": "user_annotation",
            "name": name,
            "pid": 1,
            "tid": self.tid,
        }
        event |= {"ts": self.now, "args": {}}
        self.events.append(event)
        self.now += 1
        self.run(*operators)
        self.now += 1
        event["dur"] = self.now - event["ts"]
        self.now += 1

    def write(self, path: Path) -> Path:
        text: dict[str, Any] = {"traceEvents": self.events}
        if self.gpu:
            text["deviceProperties"] = [{"id": 0, "name": self.gpu}]
        path.write_text(json.dumps(text), encoding="utf-8")
        return path

    def ask(self, folder: Path, sql: str, **settings: Any) -> list[dict[str, Any]]:
        """Return the answer of a query over the trace, in a store of its own in `folder`."""
        store = Store(folder / "store")
        trace = store.ingest(self.write(folder / "made.json")).trace_id
        given = store.settings(trace).merged(Settings(**settings))
        with Database(store, {trace: given}) as database:
            return database.query(sql).dicts()


CALLS = (
    "select c.*, w.* exclude (trace_id, call_no, problem), w.problem as work_problem,"
    " r.precision, r.bound, r.efficiency_pct, r.roofline_us from attention_calls as c"
    " join attention_work as w using (trace_id, call_no)"
    " join attention_rooflines as r using (trace_id, call_no) order by call_no"
)
"""Calls with their work and roofline, in order of time."""
