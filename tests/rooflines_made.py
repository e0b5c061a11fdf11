"""Rooflines of calls given by hand: columns of a call, its work and its load in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
from view_tables import columns, rows_of

from trace_sql.analysis import create_table
from trace_sql.hardware import choose_gpu
from trace_sql.views import load_views

Row = dict[str, Any]

TABLES = (
    *("attention_calls", "attention_work", "attention_loads"),
    *("trace_gpus", "launch_floors", "hardware_peaks"),
)

VIEWS = (
    "trace_peaks",
    "attention_peaks",
    "attention_tiles",
    "attention_bounds",
    "attention_floors",
    "attention_rooflines",
)


@cache
def views() -> duckdb.DuckDBPyConnection:
    """The views over empty tables, to be filled anew for each question."""
    connection = duckdb.connect()
    for name in TABLES:
        create_table(connection, name, columns(name), [])
    for name in VIEWS:
        connection.execute(f"create view {name} as {load_views()[name].text}")
    return connection


def fill(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    views().execute(f"delete from {name}")
    if rows:
        marks = ", ".join("?" * len(columns(name)))
        values = [[row.get(key) for key in columns(name)] for row in rows]
        views().executemany(f"insert into {name} values ({marks})", values)


def rooflines(
    *calls: Row,
    gpu: str | None = "H100 SXM",
    peak: str = "datasheet",
    launch_ns: int | None = None,
) -> list[Row]:
    """Return the rooflines of calls, given as columns of the call, its work and its load."""
    hardware = choose_gpu(gpu, peak)
    sizes = {one.name: one.value("units") for one in hardware.gpus}
    known = {
        "trace_id": "t",
        "gpu": gpu,
        "peak": peak,
        "units": sizes[gpu] if gpu else None,
        "problem": None if gpu else "GPU not recognised",
    }
    rows = [
        {"trace_id": "t", "call_no": number, "implementation": "flash", "direction": "fwd"}
        | {"q_dtype": "bf16", "core_ns": call.get("busy_ns")}
        | {"packed": "c_sq" in call or "g_sq" in call}
        | call
        for number, call in enumerate(calls)
    ]
    fill("attention_calls", rows)
    fill("attention_work", rows)
    fill("attention_loads", [row for row in rows if row["packed"]])
    fill("trace_gpus", [known])
    fill("launch_floors", [{"trace_id": "t", "launch_ns": launch_ns}] if launch_ns else [])
    kinds = columns("hardware_peaks")
    peaks = [dict(zip(kinds, row, strict=True)) for row in hardware.peak_rows()]
    fill("hardware_peaks", [row for row in peaks if row["gpu"] == gpu])
    return rows_of(views(), "from attention_rooflines order by call_no")


def roofline(gpu: str | None = "H100 SXM", **call: Any) -> Row:
    (row,) = rooflines(call, gpu=gpu)
    return row
