"""The cells of a findings table against the operations of the metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from trace_sql.findings_reader import Detail, Fault, plain
from trace_sql.findings_sums import decimal, objects
from trace_sql.findings_tables import COLUMNS, MISSING, block_table
from trace_sql.safe_text import clean

_SUFFIX = re.compile(r" \((decode|prefill|mixed|fwd|bwd|forward|backward)\)$")
_TEXTS = {
    "Args": "args",
    "Args (T1)": "args",
    "Kernel Path": "launcher_path",
    "Kernel Name": "kernel_name_trunc",
}
_AMOUNTS = {
    "Time (ms)": "time_ms",
    "%E2E": "percent_of_total",
    "Count": "count",
    "FLOPS/Byte": "efficiency.flops_per_byte",
    "FLOPS/Byte (T1)": "efficiency.flops_per_byte",
    "Trace 1 Time (ms)": "time_ms",
    "Trace 2 Time (ms)": "t2_time_ms",
    "Difference (ms)": "difference_ms",
}
_WORKLOAD = {"Workload": "workload_type", "Attention Pattern": "attention_pattern"}
"""Columns of paged attention; behind a pattern stands its ratio."""
_DIGITS = Decimal("1e-14")
"""A cell has all digits of a number, JSON the first 17."""
_MOST_ROWS = 10
_NOTHING = (None, "", "Not found", MISSING)


def cell_faults(
    block: Detail, finding: dict[str, Any], operations: list[dict[str, Any]], scope: str
) -> Iterator[Fault]:
    """Yield cells that say of an operation what the metrics do not, and rows of no member."""
    table = block_table(block)
    if table is None or table.columns[: len(COLUMNS[scope])] != COLUMNS[scope]:
        return
    members = {text(member.get("operation")) for member in objects(finding, "members")}
    taken: list[int] = []
    for line, cells in table.rows:
        if len(cells) != len(table.columns):
            continue
        row = dict(zip(table.columns, cells, strict=True))
        name = plain(row["Operation"].strip("`"))
        names = {name, _SUFFIX.sub("", name)}
        alike = [
            index
            for index, operation in enumerate(operations)
            if text(operation.get("name")) in names
        ]
        if not alike:
            yield Fault(line, "table cells", f"no operation of the metrics is named {name!r}")
            continue
        faults = {index: list(_row_faults(line, row, operations[index])) for index in alike}
        best = min(alike, key=lambda index: (len(faults[index]), index in taken))
        yield from faults[best]
        if best in taken:
            yield Fault(line, "table", f"{name!r} stands twice in the table; keep one row")
        taken.append(best)
        if members and not names & members:
            yield Fault(line, "table", f"{name!r} is no member of finding {block.rank}")
    # A long list may be cut; what it begins with are the operations that matter most.
    count = len(objects(finding, "members"))
    if len(table.rows) < min(count, _MOST_ROWS):
        yield Fault(
            table.line,
            "table",
            f"{len(table.rows)} rows for {count} members; write one each",
        )


def text(value: Any) -> str:
    """Return a text of the metrics as a cell shows it."""
    return clean(str(value))


def value_of(operation: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path; None where there is none."""
    value: Any = operation
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _row_faults(line: int, row: dict[str, str], operation: dict[str, Any]) -> Iterator[Fault]:
    for column, cell in row.items():
        if column in _TEXTS:
            told = value_of(operation, _TEXTS[column])
            if not _same_text(cell, told):
                yield _fault(line, column, cell, told)
        elif column in _AMOUNTS:
            told = value_of(operation, _AMOUNTS[column])
            if not _same_amount(cell.rstrip("%"), told):
                yield _fault(line, column, cell, told)
        elif column == "Count (T1/T2)":
            both = re.split(r"\s*/\s*", cell)
            told = [operation.get("count"), operation.get("count_trace2")]
            if len(both) != 2 or not all(map(_same_amount, both, told)):
                yield _fault(line, column, cell, "/".join(map(_shown, told)))
        elif column in ("Bound", "Bound (T1)"):
            told = value_of(operation, "efficiency.bound_type")
            if cell != (f"{told}-bound" if told else MISSING):
                yield _fault(line, column, cell, told)
        elif column in _WORKLOAD:
            told = value_of(operation, f"classification.workload_profile.{_WORKLOAD[column]}")
            known = told if told != "unknown" else None
            if not _same_text(cell.split(" ")[0], known):
                yield _fault(line, column, cell, known)
    if "Efficiency" in row:
        yield from _efficiency_faults(line, row["Efficiency"], operation)


def _efficiency_faults(line: int, cell: str, operation: dict[str, Any]) -> Iterator[Fault]:
    share = value_of(operation, "efficiency.efficiency_percent")
    if cell == MISSING and (share is None or value_of(operation, "efficiency.is_anomaly")):
        return
    match = re.fullmatch(r"(\S+)% of (\S+) (TFLOPS|TB/s)", cell)
    told = "resolved_peak_maf" if match and match[3] == "TFLOPS" else "resolved_peak_hbm_bw"
    peak = value_of(operation, f"efficiency.{told}")
    if match is None or not (_same_amount(match[1], share) and _same_amount(match[2], peak)):
        yield _fault(line, "Efficiency", cell, f"{_shown(share)}% of {_shown(peak)}")


def _same_text(cell: str, told: Any) -> bool:
    if cell == MISSING:
        return told in _NOTHING
    shown = cell[1:-1] if re.fullmatch(r"`[^`]*`", cell) else plain(cell)
    return told not in _NOTHING and shown in (text(told), text(told).replace("\\n", " "))


def _same_amount(cell: str, told: Any) -> bool:
    """Whether `cell` is the number `told`, to the decimals that it has."""
    number = decimal(told)
    if number is None:
        return cell == MISSING
    shown = decimal(cell.replace("\u2212", "-"))
    if shown is None:
        return False
    if shown == 0 and abs(number) >= Decimal("0.005"):
        return False
    exponent = shown.as_tuple().exponent
    ulp = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    return abs(shown - number) <= max(ulp * Decimal("0.501"), abs(number) * _DIGITS)


def _shown(told: Any) -> str:
    return MISSING if told in _NOTHING else str(told)


def _fault(line: int, column: str, cell: str, told: Any) -> Fault:
    return Fault(line, "table cells", f"{column} is {cell!r}, the metrics say {_shown(told)!r}")
