"""Findings about attention as Markdown: written from metrics, figure by figure.

`findings_text` writes what is known first, then a card for each finding of the metrics in order of
rank, then a detail block for each, and nothing else; a trace without attention and an analysis that
failed give the files that say so. Names in it come from the trace and are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trace_sql.attention_opening import opening
from trace_sql.attention_prose import (
    action,
    also,
    identification,
    insight,
    others,
    reasoning,
    resolution,
    title,
)
from trace_sql.attention_words import Operation, parts_of, percent
from trace_sql.findings_reader import DETAILS, NO_DATA, RECOMMENDATIONS
from trace_sql.findings_tables import COLUMNS, MISSING
from trace_sql.safe_text import clean, escaped

_SECTIONS = (RECOMMENDATIONS, DETAILS)
_PHASES = ("prefill", "decode", "mixed")
_PAGED = ("Kernel Breakdown", "Workload", "Attention Pattern")
"""Columns behind the ten, where a finding has paged attention."""

Finding = Mapping[str, Any]
Metrics = Mapping[str, Any]


def findings_text(metrics: Metrics) -> str:
    """Return the findings file of metrics with the status OK, NO_DATA or ERROR."""
    heading = (
        f"# Attention in {escaped(clean(str(metrics['trace'])))}" if "trace" in metrics else ""
    )
    if metrics["status"] == "ERROR":
        lines = ["# Attention", "Status: ERROR", _sentence(metrics["error"]), *_SECTIONS]
        return _document(lines)
    if not metrics["operations"]:
        return _document([heading, f"{NO_DATA}.", *opening(metrics), *_SECTIONS])
    findings = metrics["category_findings"]
    cards: list[str] = []
    advised: dict[str, int] = {}
    for finding in findings:
        cards += _card(finding, metrics, advised)
    blocks = [line for finding in findings for line in _block(finding, metrics)]
    return _document([heading, *opening(metrics), _SECTIONS[0], *cards, _SECTIONS[1], *blocks])


def impact_marker(kind: str, finding: Finding, lines: Sequence[str]) -> str:
    """Return lines wrapped in the marker of a finding's impact, with the numbers of the metrics."""
    names = {"low": "impact_score_low", "mid": "impact_score", "high": "impact_score_high"}
    shown = [
        f"{name}={number(finding[key])}"
        for name, key in names.items()
        if kind == "p_item" or name != "mid"
    ]
    return "\n".join(
        [f"<!-- impact-begin kind={kind} {' '.join(shown)} -->", *lines, "<!-- impact-end -->"]
    )


def number(value: Any) -> str:
    """Return a number of the metrics as their JSON text has it."""
    return json.dumps(value)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a pipe table; cells are Markdown already."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cell(text: str | None) -> str:
    """Return a text of the trace as a cell, several joined by `<br>` staying apart."""
    parts = [escaped(clean(part)) for part in (text or "").split("<br>")]
    return "<br>".join(parts) if text else MISSING


def amount(value: float | None, digits: int) -> str:
    """Return a number as a cell."""
    return MISSING if value is None else f"{value:.{digits}f}"


def _document(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _sentence(text: Any) -> str:
    return escaped(clean(str(text))).strip() or "The analysis failed."


def _members(finding: Finding, metrics: Metrics) -> list[Operation]:
    known = {operation["op_no"]: operation for operation in metrics["operations"]}
    return [known[member["op_no"]] for member in finding["members"]]


def _heading(finding: Finding, lead: Operation) -> str:
    library = finding["library"]
    known = f" ({cell(library)})" if library not in (None, "", "Unknown") else ""
    return f"P{finding['rank']}: {title(lead)}{known}"


def _card(finding: Finding, metrics: Metrics, advised: dict[str, int]) -> list[str]:
    """Return a card; advice that an earlier one gave, by its rank in `advised`, is not repeated."""
    lead, *more = _members(finding, metrics)
    first = action(lead)
    if advised.setdefault(first, finding["rank"]) < finding["rank"]:
        first = f"The same as for P{advised[first]}."
    rest = others(lead, more)
    lines = [
        f"### {_heading(finding, lead)}",
        f"**Insight**: {insight(lead)}{f' {rest}' if rest else ''}",
        f"**Action**: {first}",
        impact_marker(
            "p_item", finding, [f"**Impact**: impact_score: {number(finding['impact_score'])}"]
        ),
    ]
    if finding["estimate_method"] == "heuristic":
        lines.append(
            "> The impact is an estimate from the share of wall time that these calls take"
            f" ({percent(finding['percent_of_total'])}): 30 % of it in the middle, 15 to 45 % at"
            " the ends. No roofline stands behind it."
        )
    return lines


def _block(finding: Finding, metrics: Metrics) -> list[str]:
    members = _members(finding, metrics)
    lead, *more = members
    index = finding["rank"] - 1
    numbers = ", ".join(f"operations[{operation['op_no']}]" for operation in members[:6])
    source = f"(Source: metrics.json, category_findings[{index}] and {numbers}.)"
    told = [identification(lead), *(also(lead, one) for one in more[:4])]
    low, high = (number(finding[key]) for key in ("impact_score_low", "impact_score_high"))
    return [
        f"<!-- reasoning-candidate tier=compute rank={finding['rank']} -->",
        f"#### {_heading(finding, lead)}",
        f"**Identification:** {' '.join(told)} {source}",
        "**Data:**",
        _table(members),
        f"**Reasoning for Slowdown:** {_reasons(members)}",
        f"**Resolution:** {resolution(lead)}",
        "**Impact estimate:**",
        impact_marker(
            "detail_estimate",
            finding,
            [f"- Low end impact_score: {low}", f"- High end impact_score: {high}"],
        ),
    ]


def _reasons(members: Sequence[Operation]) -> str:
    """Return why the first is slow, and others where the cause is another."""
    found: dict[str, str] = {}
    for operation in members:
        cause = operation["analysis"]["cause"]
        if cause not in found:
            text = reasoning(operation)
            found[cause] = text if not found else f"Of operation {operation['op_no']}: {text}"
    return " ".join(list(found.values())[:3])


def _table(members: Sequence[Operation]) -> str:
    paged = any(one["classification"]["is_paged_attention"] for one in members)
    columns = COLUMNS["standalone"] + (_PAGED if paged else ())
    return table_text(
        columns, [_row(one) + (_paged_cells(one) if paged else []) for one in members]
    )


def _row(operation: Operation) -> list[str]:
    phase = operation["perf_params"]["phase"]
    suffix = f" ({phase})" if phase in _PHASES else ""
    efficiency = operation["efficiency"]
    bound = efficiency["bound_type"]
    path = operation["launcher_path"]
    return [
        cell(operation["name"]) + suffix,
        cell(operation["args"]),
        MISSING if path == "Not found" else cell(path),
        cell(operation["kernel_name_trunc"]),
        amount(operation["time_ms"], 3),
        amount(operation["percent_of_total"], 2),
        str(operation["count"]),
        amount(efficiency["flops_per_byte"], 2),
        efficiency_cell(efficiency),
        f"{bound}-bound" if bound else MISSING,
    ]


def efficiency_cell(efficiency: Mapping[str, Any]) -> str:
    """Return `14.12% of 3.35 TB/s`; nothing where it is unknown or no merit of the kernel."""
    share, bound = efficiency["efficiency_percent"], efficiency["bound_type"]
    if share is None or efficiency["is_anomaly"]:
        return MISSING
    if bound == "compute":
        return f"{share:.2f}% of {efficiency['resolved_peak_maf']:g} TFLOPS"
    return f"{share:.2f}% of {efficiency['resolved_peak_hbm_bw']:g} TB/s"


def _paged_cells(operation: Operation) -> list[str]:
    kind = operation["classification"]
    profile = kind["workload_profile"]
    shares = parts_of(operation["kernel_details_summary"])
    parts = [
        f"{escaped(clean(part['kernel']))} {percent(share)}"
        for part, share in zip(kind["kernel_breakdown"][:4], shares, strict=False)
    ]
    heads = profile["gqa_ratio"]
    pattern = profile["attention_pattern"]
    return [
        "<br>".join(parts) or MISSING,
        MISSING if profile["workload_type"] == "unknown" else profile["workload_type"],
        MISSING if pattern == "unknown" else f"{pattern} {heads:g}:1" if heads else pattern,
    ]
