"""Operators as a profiler records them, made before the trace that runs them: nested, of one type
of tensors or of several, on a GPU that has a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from host_made import BF16 as BF16
from host_made import FP8 as FP8
from host_made import FP16 as FP16
from host_made import Host, Kernel, Operator

from trace_sql.database import Database
from trace_sql.store import Settings, Store

FP32 = "float"
Op = Operator
_MAKER = Host()


def op(
    name: str,
    *inside: Any,
    dims: Sequence[Any] | None = None,
    types: Mapping[int, str] | str = BF16,
    **more: Any,
) -> Op:
    """Return an operator with what it holds: operators, and kernels by name or as (name, us).

    `types` are those of all tensors, or by position where they are not bf16.
    """
    parts = [Kernel(*one) if type(one) is tuple else one for one in inside]
    kinds = dict.fromkeys(range(len(dims or ())), types) if isinstance(types, str) else types
    kinds = {place: kind for place, kind in kinds.items() if dims and dims[place]}
    return _MAKER.operator(name, *parts, dims=dims, types=kinds, **more)


class Tape(Host):
    """A thread of operators on a GPU; without `shapes` it records no arguments."""

    def __init__(self, gpu: str | None = None, *, shapes: bool = True) -> None:
        super().__init__(shapes=shapes)
        self.gpu = gpu

    def run(self, *operators: Op) -> None:
        super().run(*(one if self.shapes else one._replace(args={}) for one in operators))

    def write(self, path: Path, **more: Any) -> Path:
        devices = {"deviceProperties": [{"id": 0, "name": self.gpu}]} if self.gpu else {}
        return super().write(path, **devices, **more)

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
