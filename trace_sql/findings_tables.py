"""The data tables of a findings file: columns, and the form of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trace_sql.findings_reader import (
    DETAIL_LABELS,
    DataTable,
    Detail,
    Document,
    Fault,
    data_table,
    labelled,
)

MISSING = "\u2014"
"""What a cell says that has no value."""
COLUMNS = {
    "standalone": (
        "Operation",
        "Args",
        "Kernel Path",
        "Kernel Name",
        "Time (ms)",
        "%E2E",
        "Count",
        "FLOPS/Byte",
        "Efficiency",
        "Bound",
    ),
    "comparative": (
        "Operation",
        "Args (T1)",
        "Kernel Path",
        "Kernel Name",
        "Trace 1 Time (ms)",
        "Trace 2 Time (ms)",
        "Count (T1/T2)",
        "Difference (ms)",
        "FLOPS/Byte (T1)",
        "Bound (T1)",
    ),
}
"""The columns that a table of each scope begins with."""
SCOPES = tuple(COLUMNS)

_AMOUNT = (r"\d+(\.\d+)?", "a number")
_FORMS = {
    "Time (ms)": _AMOUNT,
    "%E2E": (r"\d+(\.\d+)?%?", "a number"),
    "Count": (r"[1-9]\d*", "a whole number"),
    "FLOPS/Byte": _AMOUNT,
    "Efficiency": (
        r"\d+\.\d\d% of \d+(\.\d+)? (TFLOPS|TB/s)",
        "`X.XX% of Y TFLOPS` or `X.XX% of Y TB/s`",
    ),
    "Bound": (r"(compute|memory)-bound", "compute-bound or memory-bound"),
    "Trace 1 Time (ms)": _AMOUNT,
    "Trace 2 Time (ms)": _AMOUNT,
    "Count (T1/T2)": (rf"[1-9]\d*\s?/\s?([1-9]\d*|{MISSING})", "two whole numbers as 12/12"),
    "Difference (ms)": (r"[-+\u2212]?\d+(\.\d+)?", "a number with its sign"),
    "FLOPS/Byte (T1)": _AMOUNT,
    "Bound (T1)": (r"(compute|memory)-bound", "compute-bound or memory-bound"),
}
_PAIRS = {"compute-bound": "TFLOPS", "memory-bound": "TB/s"}


def scope_of(document: Document, metrics: dict[str, Any] | None) -> str:
    """Return the scope that the metrics say, else that of the first table; else standalone."""
    told = (metrics or {}).get("comparison_scope")
    if told in SCOPES:
        return str(told)
    for block in document.blocks:
        table = block_table(block)
        if table is not None:
            both = [scope for scope in SCOPES if set(COLUMNS[scope]) & set(table.columns[4:])]
            return both[0] if len(both) == 1 else SCOPES[0]
    return SCOPES[0]


def block_table(block: Detail) -> DataTable | None:
    """Return the table behind **Data:**; None where none follows it directly."""
    for _, body in labelled(block.body, DETAIL_LABELS)["**Data:**"]:
        return data_table(body[1:])
    return None


def table_faults(block: Detail, scope: str) -> Iterator[Fault]:
    """Yield what is wrong with the form of a block's table."""
    table = block_table(block)
    if table is None:
        if labelled(block.body, DETAIL_LABELS)["**Data:**"]:
            yield Fault(block.line, "table", "no table follows **Data:**; write one there")
        return
    expected = COLUMNS[scope]
    if table.columns[: len(expected)] != expected:
        wrong = next(
            (
                f"column {number} is {found!r}, not {name!r}"
                for number, (name, found) in enumerate(
                    zip(expected, table.columns, strict=False), 1
                )
                if name != found
            ),
            f"only {len(table.columns)} columns",
        )
        yield Fault(table.line, "table columns", f"{wrong}; a {scope} table begins with the ten")
        return
    if not table.rows:
        yield Fault(table.line, "table", "no operation stands in the table; write its members")
    for line, row in table.rows:
        if len(row) != len(table.columns):
            yield Fault(
                line,
                "table",
                f"{len(row)} cells under {len(table.columns)} columns; escape | inside of text",
            )
            continue
        yield from _row_faults(line, dict(zip(table.columns, row, strict=True)), scope)


def _row_faults(line: int, row: dict[str, str], scope: str) -> Iterator[Fault]:
    for column in COLUMNS[scope]:
        cell = row[column]
        if not cell:
            yield Fault(line, "table cells", f"{column} is empty; write {MISSING} for no value")
        elif column in _FORMS and cell != MISSING:
            pattern, words = _FORMS[column]
            if not re.fullmatch(pattern, cell):
                yield Fault(line, "table cells", f"{column} is {cell!r}; write {words}")
    if row["Operation"] == MISSING:
        yield Fault(line, "table cells", f"Operation is {MISSING}; name the operation")
    unit = _PAIRS.get(row.get("Bound", ""))
    rate = row.get("Efficiency", MISSING).rpartition(" ")[2]
    if unit and rate in _PAIRS.values() and rate != unit:
        yield Fault(line, "table cells", f"{row['Bound']} is a share of {unit}, not of {rate}")
