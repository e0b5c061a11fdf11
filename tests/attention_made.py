"""Attention calls made by hand, and the views about their work computed over them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
from view_tables import computed, rows_of

GIVEN = (
    "activities",
    "annotations",
    "attention_activities",
    "attention_calls",
    "attention_names",
    "launches",
    "timed_events",
)
"""Views that are tables of rows here."""

CALL: dict[str, Any] = {
    "trace_id": "t",
    "host_trace_id": "t",
    "evidence": "operator",
    "direction": "fwd",
    "implementation": "flash",
    "q_dtype": "bf16",
    "kv_dtype": "bf16",
    "o_dtype": "bf16",
    "bias_elements": 0.0,
    "latent": False,
    "packed": False,
    "mask": "dense",
    "mask_source": "argument",
    "shape_source": "operator",
}
"""What a call has unless a test says otherwise."""


def dense(
    *, b: float, h: float, n: float, d: float, kv: float | None = None, **more: Any
) -> dict[str, Any]:
    """Return a call of one shape: batch, heads, query and key lengths, head size."""
    sizes = {"batch": b, "h_q": h, "h_kv": h, "n_q": n, "n_kv": kv or n, "d_qk": d, "d_v": d}
    return {**sizes, **more}


def paged(*, tokens: float | None, h: float, h_kv: float, d: float, **more: Any) -> dict[str, Any]:
    """Return a call over a cache, of tokens of several requests, whose step tells the lengths."""
    return {
        **{"batch": 1.0, "n_q": tokens, "h_q": h, "h_kv": h_kv, "d_qk": d, "d_v": d},
        **{"packed": True, "implementation": "paged", "mask": "causal_br"},
        **{"mask_source": "family", **more},
    }


def at(call_no: int, **more: Any) -> dict[str, Any]:
    """Return a launch of a call at `launch_ns` on thread 1 of process 1, 100 ns a call apart."""
    return {"trace_id": "t", "event_id": call_no, "pid": "1", "tid": "1", **more}


def step(name: str, start_ns: int = 0, end_ns: int = 1_000_000, **more: Any) -> dict[str, Any]:
    """Return a range around calls."""
    known = {"trace_id": "t", "side": "host", "kind": "step", "pid": "1", "tid": "1"}
    return {**known, "name": name, "start_ns": start_ns, "end_ns": end_ns, **more}


@contextlib.contextmanager
def made(
    calls: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]] = (),
    launches: Sequence[Mapping[str, Any]] | None = None,
    targets: Sequence[str] = ("attention_work",),
    **tables: Sequence[Mapping[str, Any]],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with `targets` over one activity a call, launched at 100 ns a call.

    What the names of `steps` tell about requests is read as the analysis reads it.
    """
    calls = [{**CALL, "call_no": number, **call} for number, call in enumerate(calls)]
    kernels = [
        {"trace_id": "t", "event_id": number, "name": "k", "pid": "0", "tid": "7", "selected": True}
        | {"start_ns": 5000 + 100 * number, "end_ns": 5050 + 100 * number, "dur_ns": 50}
        for number in range(len(calls))
    ]
    if launches is None:
        launches = [at(number, launch_ns=100 + 100 * number) for number in range(len(calls))]
    rows: dict[str, Sequence[Mapping[str, Any]]] = {
        "attention_calls": calls,
        "activities": kernels,
        "attention_activities": [
            {"trace_id": "t", "event_id": number, "call_no": number, "role": "core"}
            for number in range(len(calls))
        ],
        "launches": launches,
        "annotations": [{"event_id": 1000 + number, **row} for number, row in enumerate(steps)],
        **tables,
    }
    with computed({name: rows.get(name, ()) for name in GIVEN}, targets) as connection:
        yield connection


def work(*calls: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
    """Return the work of calls, by call."""
    with made(calls, steps) as connection:
        return rows_of(connection, "from attention_work order by call_no")
