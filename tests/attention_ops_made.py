"""Calls of attention made by hand, with time, work and roofline, and the views about operations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
from view_tables import computed

Row = dict[str, Any]

GIVEN = (
    "activities",
    "activity_layers",
    "activity_operators",
    "attention_activities",
    "attention_calls",
    "attention_loads",
    "attention_names",
    "attention_rooflines",
    "attention_work",
    "events",
    "kernel_categories",
    "launches",
    "layers",
    "passes",
    "timed_events",
    "trace_gpus",
    "traces",
)
"""Views that are tables of rows here."""

CALL: Row = {
    "trace_id": "t",
    "host_trace_id": "t",
    "operator": "flash::fwd",
    "evidence": "operator",
    "family": "flash",
    "direction": "fwd",
    "implementation": "flash",
    "library": "Flash",
    "batch": 1.0,
    "n_q": 1024.0,
    "n_kv": 1024.0,
    "h_q": 8.0,
    "h_kv": 8.0,
    "d_qk": 64.0,
    "d_v": 64.0,
    "q_dtype": "bf16",
    "kv_dtype": "bf16",
    "o_dtype": "bf16",
    "mask": "dense",
    "mask_source": "argument",
    "latent": False,
    "packed": False,
    "bias_elements": 0.0,
    "gpu": "H100 SXM",
    "precision": "bf16",
    "peak_tflops": 989.4,
    "peak_kind": "datasheet",
    "hbm_tb_s": 3.35,
    "bound": "compute",
    "flops": 1e9,
    "bytes": 1e6,
    "pairs_lo": 1024.0 * 1024,
    "pairs_hi": 1024.0 * 1024,
    "us": 10.0,
}
"""What a call has unless a test says otherwise; `us` is its time, `roofline_us` its roofline,
`kernel` its kernel, `parts` further activities as (role, kernel, us)."""


@contextlib.contextmanager
def made_ops(
    calls: Sequence[Mapping[str, Any]],
    targets: Sequence[str] = ("finding_members",),
    extra_us: float = 0.0,
    span_us: float | None = None,
    **tables: Sequence[Mapping[str, Any]],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with `targets` over `calls`, one after the other on one stream.

    A call can be of another trace. `extra_us` is work of other kinds behind them, `span_us` the
    wall time of all, idle included.
    """
    rows: dict[str, list[Row]] = {name: [] for name in GIVEN}
    at_us, event_id = 0.0, 0

    def activity(name: str, us: float, trace_id: str = "t") -> Row:
        nonlocal at_us, event_id
        start = round(at_us * 1000)
        at_us, event_id = at_us + us, event_id + 1
        return {
            **{"trace_id": trace_id, "event_id": event_id - 1, "gpu_index": event_id - 1},
            **{
                "kind": "kernel",
                "name": name,
                "pid": "0",
                "tid": "7",
                "device": 0,
                "stream": 7,
                "selected": True,
            },
            **{"start_ns": start, "end_ns": start + round(us * 1000), "dur_ns": round(us * 1000)},
        }

    for number, given in enumerate(calls):
        call = {**CALL, "call_no": number, **_work(given), **given}
        kernel = call.pop("kernel", "flash_kernel")
        parts = [("core", kernel, call["us"]), *call.pop("parts", ())]
        found = [(role, activity(name, us, call["trace_id"])) for role, name, us in parts]
        call["us"] = sum(us for _, _, us in parts)
        rows["activities"] += [row for _, row in found]
        rows["attention_activities"] += [
            {**row, "call_no": number, "role": role} for role, row in found
        ]
        rows["activity_layers"] += [
            {**row, **{key: call.get(key) for key in ("pass_no", "loop_no", "layer_no", "region")}}
            for _, row in found
        ]
        busy = round(call["us"] * 1000)
        attending = [(us, name) for role, name, us in parts if role in ("core", "combine", "step")]
        call |= {
            "start_ns": found[0][1]["start_ns"],
            "end_ns": found[-1][1]["end_ns"],
            "busy_ns": busy,
            "core_ns": round(sum(us for us, _ in attending) * 1000),
            "sum_dur_ns": busy,
            "n_activities": len(found),
            "lead_event_id": found[0][1]["event_id"],
            "kernel_names": [name for _, name in sorted(attending, reverse=True)],
        }
        rows["attention_calls"].append(call)
        rows["attention_work"].append(call)
        rows["attention_rooflines"].append(_roofline(call))
        if "c_n" in call or "g_n" in call:
            rows["attention_loads"].append(call)
    if extra_us:
        rows["activities"].append(activity("gemm", extra_us))
    if span_us is not None:
        at_us = span_us - 0.001
        rows["activities"].append(activity("last", 0.001))
    names = {(row["trace_id"], row["name"]) for row in rows["activities"]}
    rows["kernel_categories"] = [
        {"trace_id": trace_id, "name": name, "simplified_name": name}
        for trace_id, name in sorted(names)
    ]
    rows["traces"] = [{"trace_id": "t", "name": "made"}]
    rows["trace_gpus"] = [
        {"trace_id": "t", "gpu": CALL["gpu"], "gpu_source": "device name", "peak": "datasheet"}
        | {"units": 132}
    ]
    rows |= {name: list(listed) for name, listed in tables.items()}  # type: ignore[arg-type]
    with computed(rows, targets) as connection:
        yield connection


def _work(given: Mapping[str, Any]) -> Row:
    """Return the work that makes the roofline of a call what a test says it is."""
    call = {**CALL, **given}
    if call.get("roofline_us") is None or "bytes" in given:
        return {}
    peak, bandwidth = (call["roofline_us"] * 1e6 * call[key] for key in ("peak_tflops", "hbm_tb_s"))
    if call["bound"] == "memory":
        return {"flops": peak / 4, "bytes": bandwidth}
    return {"flops": peak, "bytes": bandwidth / 4}


def _roofline(call: Row) -> Row:
    """Return the roofline of a call, of which the test gives `roofline_us`, or nothing."""
    roof, busy = call.get("roofline_us"), call["busy_ns"] / 1000
    return {
        **call,
        "busy_us": busy,
        "core_us": call["core_ns"] / 1000,
        "floor_us": call.get("floor_us", roof),
        "floor_kind": call.get("floor_kind", call["bound"] if roof else None),
        "launch_us": call.get("launch_us", 1.0),
        "bound": call["bound"] if roof is not None else None,
        "efficiency_pct": None if roof is None else 100 * roof / busy,
        "anomaly": roof is not None and roof > 1.1 * busy,
    }
