"""Traces of attention without a fused kernel, made operator by operator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trace_sql.database import Database
from trace_sql.store import Settings, Store

BF16 = "c10::BFloat16"


class Host:
    """A thread that calls operators one after another; each may launch a kernel and hold others."""

    def __init__(self, tid: int = 1, stream: int = 7, shapes: bool = True) -> None:
        self.events: list[dict[str, Any]] = []
        self.tid, self.stream, self.shapes = tid, stream, shapes
        self.now = 1000
        self.gpu = 5000
        self.kernels: list[str] = []

    def call(
        self,
        name: str,
        dims: Sequence[Sequence[int]] = (),
        kernel: str | None = None,
        *,
        dtype: str = BF16,
        scalars: Sequence[str] = (),
        inside: Sequence[tuple[Any, ...]] = (),
        us: int = 10,
    ) -> None:
        """Call an operator that launches a kernel of `us` microseconds, or calls others."""
        begin = self.now
        self.now += 2
        if kernel:
            self._launch(kernel, us)
        for child in inside:
            self.call(*child)
        self.now += 2
        args: dict[str, Any] = {}
        if self.shapes:
            args = {
                "Input Dims": [*dims, *[[] for _ in scalars]],
                "Input type": [dtype] * len(dims) + ["Scalar"] * len(scalars),
                "Concrete Inputs": [""] * len(dims) + list(scalars),
            }
        self.events.append(
            {
                **{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": self.tid},
                **{"ts": begin, "dur": self.now - begin, "args": args},
            }
        )
        self.now += 1

    def _launch(self, kernel: str, us: int) -> None:
        correlation = 1000 * self.tid + len(self.kernels) + 1
        self.events.append(
            {
                **{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1},
                **{"tid": self.tid, "ts": self.now, "dur": 1},
                "args": {"correlation": correlation},
            }
        )
        self.now += 2
        self.gpu = max(self.gpu, self.now)
        self.events.append(
            {
                **{"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": self.stream},
                **{"ts": self.gpu, "dur": us},
                "args": {"device": 0, "stream": self.stream, "correlation": correlation},
            }
        )
        self.gpu += us + 1
        self.kernels.append(kernel)


def ask(
    folder: Path, events: Sequence[dict[str, Any]], sql: str, **settings: Any
) -> list[dict[str, Any]]:
    """Return the answer of a query over a trace of these events."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "made.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    store = Store(folder / "store")
    trace = store.ingest(path).trace_id
    with Database(store, {trace: store.settings(trace).merged(Settings(**settings))}) as database:
        return database.query(sql).dicts()
