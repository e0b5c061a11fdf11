"""Attention against the roofline as tables: what stands in views, under headings."""

from __future__ import annotations

from trace_sql.database import Database
from trace_sql.output import Column, Table
from trace_sql.reports import view_table

_MOST_PASSES = 20
"""Passes whose share a person is shown."""


def attention_tables(db: Database, trace_id: str, *, full: bool = False) -> list[Table]:
    """Return the operations, their kernels, and the share of attention in the trace.

    `full` gives every column of `attention_ops` in place of those that a terminal has room for.
    """
    return [
        _all_operations(db, trace_id) if full else _operations(db, trace_id),
        *([] if full else [_notes(db, trace_id)]),
        _kernels(db, trace_id),
        _shares(db, trace_id, full),
    ]


def coverage(db: Database, trace_id: str) -> str:
    """Return the line that says what the figures stand on: GPU, peak, and kernels left out."""
    gpus = db.query("from trace_gpus where trace_id = ?", [trace_id]).dicts()
    kernels = db.query("from attention_coverage where trace_id = ?", [trace_id]).dicts()
    kinds = "select distinct peak_kind from attention_ops where trace_id = ? and peak_kind <> ''"
    used = {kind for (kind,) in db.query(kinds, [trace_id]).rows}
    gpu = gpus[0] if gpus else {}
    parts = [
        f"GPU {gpu['gpu']} (from {gpu['gpu_source']}),"
        f" {' and '.join(sorted(used)) or gpu['peak']} peaks"
        if gpu.get("gpu")
        else f"GPU not known, so no efficiencies: {gpu.get('problem') or 'give --gpu NAME'}"
    ]
    for row in kernels:
        parts.append(f"{row['n_named'] - row['n_uncovered']} of {row['n_named']} attention kernels")
        if row["n_uncovered"]:
            names = ", ".join(row["uncovered"])
            parts.append(f"{row['uncovered_ms']:.3f} ms in kernels of no call: {names}")
    return "coverage: " + ", ".join(parts)


def _operations(db: Database, trace_id: str) -> Table:
    return view_table(
        db,
        "operations",
        "Attention, longest first",
        (
            Column("op_no", "#"),
            Column("operation", "Operation", wrap=True),
            Column("shape", "Shape", wrap=True),
            Column("phase", "Phase"),
            Column("n_calls", "Calls"),
            Column("mean_us", "Mean(us)", 1),
            Column("busy_pct", "% busy", 1),
            Column("flops_per_byte", "FLOPS/B", 1),
            Column("bound", "Bound"),
            Column("efficiency_pct", "% roof", 1),
            Column("floor_efficiency_pct", "% floor", 1),
        ),
        "attention_table",
        trace_id,
        "op_no",
    )


def _all_operations(db: Database, trace_id: str) -> Table:
    result = db.query("from attention_ops where trace_id = ? order by op_no", [trace_id])
    columns = tuple(Column(name, name) for name in result.columns)
    return Table("operations", "", columns, result.rows)


def _notes(db: Database, trace_id: str) -> Table:
    return view_table(
        db,
        "notes",
        "What stands behind the figures",
        (
            Column("op_no", "#"),
            Column("layers", "Layers", wrap=True),
            Column("achieved", "Achieved"),
            Column("floor_kind", "Floor by"),
            Column("formula", "Formula"),
            Column("note", "Assumed, odd or not known", wrap=True),
        ),
        "attention_table",
        trace_id,
        "op_no",
    )


def _kernels(db: Database, trace_id: str) -> Table:
    return view_table(
        db,
        "kernels",
        "Their kernels",
        (
            Column("op_no", "#"),
            Column("role", "Role"),
            Column("kernel", "Kernel", wrap=True),
            Column("n_launches", "Launches"),
            Column("mean_us", "Mean(us)", 1),
            Column("sum_us", "Sum(us)", 1),
            Column("op_pct", "% of op", 1),
        ),
        "attention_op_kernels",
        trace_id,
        "op_no, sum_us desc, kernel",
    )


def _shares(db: Database, trace_id: str, full: bool) -> Table:
    """Return the shares of the trace, its phases and layer types, and for people of few passes."""
    count = "select count(*) from attention_shares where trace_id = ? and scope = 'pass'"
    ((n_passes,),) = db.query(count, [trace_id]).rows
    title = "Share of attention"
    condition = "true"
    if not full and n_passes > _MOST_PASSES:
        title += f" (the first {_MOST_PASSES} of {n_passes} passes; --format json has all)"
        condition = f"(scope <> 'pass' or position < {_MOST_PASSES})"
    return view_table(
        db,
        "shares",
        title,
        (
            Column("scope", "Scope"),
            Column("of", "Of", wrap=True),
            Column("n_calls", "Calls"),
            Column("attention_ms", "Attention(ms)", 3),
            Column("busy_pct", "% of busy", 1),
            Column("wall_pct", "% of wall", 1),
        ),
        "attention_shares",
        trace_id,
        "scope_order, position",
        condition,
    )
