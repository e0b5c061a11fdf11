"""Traces of operators made by hand: a thread that calls them, a stream that runs their kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trace_sql.database import Database
from trace_sql.store import Settings, Store

FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(x)"
FLASH_BACKWARD = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>(y)"
BF16, FP16, FP8 = "c10::BFloat16", "c10::Half", "c10::Float8_e4m3fn"


class Kernel(NamedTuple):
    name: str
    us: float


class Operator(NamedTuple):
    name: str
    args: dict[str, Any]
    inside: tuple[Any, ...]


class Host:
    """A thread that calls operators one after another; each launches kernels and calls others.

    A kernel takes `us` microseconds unless it says how long, and starts behind its launch and the
    kernel before it. Without `shapes` no arguments are recorded.
    """

    def __init__(self, tid: int = 1, stream: int = 7, shapes: bool = True, us: float = 10) -> None:
        self.events: list[dict[str, Any]] = []
        self.tid, self.stream, self.shapes, self.us = tid, stream, shapes, us
        self.now, self.free, self.launched = 1000.0, 5000.0, 0

    def operator(
        self,
        name: str,
        *inside: Any,
        dims: Sequence[Any] | None = None,
        scalars: Mapping[int, str] | None = None,
        types: Mapping[int, str] | None = None,
        strides: Sequence[Any] | None = None,
        sequence: int | None = None,
    ) -> Operator:
        """Return an operator to `run`, with kernels (or their names) and operators inside of it.

        Tensors are bf16 unless `types` says otherwise; `scalars` are Concrete Inputs by position.
        """
        args: dict[str, Any] = {} if sequence is None else {"Sequence number": sequence}
        if dims is not None and self.shapes:
            n = max(len(dims), *(place + 1 for place in (scalars or {0: ""})))
            full = [*dims, *[[]] * (n - len(dims))]
            kinds = [BF16 if one else "" for one in full]
            for place, kind in (types or {}).items():
                kinds[place] = kind
            concrete = [""] * n
            for place, text in (scalars or {}).items():
                concrete[place] = text
            args |= {"Input Dims": full, "Input type": kinds, "Concrete Inputs": concrete}
            if strides is not None:
                args["Input Strides"] = [*strides, *[[]] * (n - len(strides))]
        return Operator(name, args, inside)

    def run(self, *operators: Operator) -> None:
        for operator in operators:
            begin = self.now
            self.now += 2
            for one in operator.inside:
                if isinstance(one, Operator):
                    self.run(one)
                else:
                    self._launch(one if isinstance(one, Kernel) else Kernel(one, self.us))
            self.now += 2
            self._range("cpu_op", operator.name, begin, operator.args)

    def call(
        self, name: str, dims: Sequence[Any], *inside: Any, scalars: Sequence[str] = ()
    ) -> None:
        """Run an operator whose scalar arguments stand behind its tensors."""
        places = dict(enumerate(scalars, len(dims)))
        self.run(self.operator(name, *inside, dims=dims, scalars=places))

    def step(self, name: str, *operators: Operator) -> None:
        """Run operators inside a range of this name."""
        begin = self.now
        self.now += 1
        self.run(*operators)
        self._range("user_annotation", name, begin, {})

    def _range(self, category: str, name: str, begin: float, args: Mapping[str, Any]) -> None:
        self.events.append(
            {
                **{"ph": "X", "cat": category, "name": name, "pid": 1, "tid": self.tid},
                **{"ts": begin, "dur": self.now - begin, "args": dict(args)},
            }
        )
        self.now += 1

    def _launch(self, kernel: Kernel) -> None:
        self.launched += 1
        link = {"correlation": 1000 * self.tid + self.launched}
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1}
        self.events.append({**launch, "tid": self.tid, "ts": self.now, "dur": 1, "args": link})
        self.now += 2
        start = max(self.free, self.now)
        self.events.append(
            {
                **{"ph": "X", "cat": "kernel", "name": kernel.name, "pid": 0, "tid": self.stream},
                **{"ts": start, "dur": kernel.us},
                "args": {"device": 0, "stream": self.stream, **link},
            }
        )
        self.free = start + kernel.us + 1

    def write(self, path: Path, **more: Any) -> Path:
        """Write the trace, with `more` top-level keys."""
        path.write_text(json.dumps({**more, "traceEvents": self.events}), encoding="utf-8")
        return path


def ask(
    folder: Path, events: Sequence[Mapping[str, Any]], sql: str, **settings: Any
) -> list[dict[str, Any]]:
    """Return the answer of a query over a trace of these events."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "made.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    store = Store(folder / "store")
    trace = store.ingest(path).trace_id
    with Database(store, {trace: store.settings(trace).merged(Settings(**settings))}) as database:
        return database.query(sql).dicts()
