"""Findings of a comparison as Markdown: what trace 1 would gain by being like trace 2.

The form is that of `attention_findings`, with the columns of a comparison. Each text is written
from the two parts of a ratio of times: what GPU and types make of it, and what kernels make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_sql.attention_findings import (
    amount,
    cell,
    findings_text,
    impact_marker,
    number,
    table_text,
)
from trace_sql.attention_words import (
    Operation,
    code,
    count,
    kind,
    listed,
    micros,
    noun,
    percent,
    shape_words,
)
from trace_sql.comparison_prose import action, insight, reasoning, resolution, title, unlike
from trace_sql.findings_reader import DETAILS, NO_DATA, RECOMMENDATIONS
from trace_sql.findings_tables import COLUMNS, MISSING
from trace_sql.safe_text import clean, escaped

_SECTIONS = (RECOMMENDATIONS, DETAILS)
_MORE = ("Own Roofline (T1)", "Own Roofline (T2)", "GPU Part", "Kernel Part", "Kernel Name (T2)")
"""Columns behind the ten."""
_PHASES = ("prefill", "decode", "mixed")
_MOST_MEMBERS = 3

Finding = Mapping[str, Any]
Metrics = Mapping[str, Any]


def comparison_text(metrics: Metrics) -> str:
    """Return the findings file of a comparison's metrics: OK, NO_DATA or ERROR."""
    if metrics["status"] == "ERROR":
        return findings_text(metrics)
    heading = (
        f"# Attention in {escaped(clean(str(metrics['trace'])))} (trace 1) against"
        f" {escaped(clean(str(metrics['trace2'])))} (trace 2)"
    )
    if not metrics["operations"]:
        return _document([heading, f"{NO_DATA} 1.", *_SECTIONS])
    findings = metrics["category_findings"]
    cards = [line for finding in findings for line in _card(finding, metrics)]
    blocks = [line for finding in findings for line in _block(finding, metrics)]
    return _document([heading, *_opening(metrics), _SECTIONS[0], *cards, _SECTIONS[1], *blocks])


def _document(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(metrics: Metrics) -> list[str]:
    operations = metrics["operations"]
    both = [one for one in operations if one["t2_time_ms"] is not None]
    lacking = [one for one in operations if one["t2_time_ms"] is None]
    gpus = [metrics[key]["gpu"] or "an unknown GPU" for key in ("hardware", "hardware2")]
    where = f"Both ran on {gpus[0]}." if gpus[0] == gpus[1] else f"They ran on {listed(gpus)}."
    times, other = metrics["times"], metrics["times2"]["attention_ms"]
    theirs = f"and {micros(other * 1000)} of trace 2" if other else "and trace 2 has none"
    paragraphs = [
        f"Attention takes {micros(times['attention_ms'] * 1000)} of trace 1,"
        f" {percent(times['busy_pct'])} of the time in which its GPU works and"
        f" {percent(times['wall_pct'])} of its wall time, {theirs}. {where}"
    ]
    if both:
        paragraphs.append(_together(both))
    else:
        paragraphs.append(
            "No kind of calls is in both, so nothing is compared: calls match by shape, types, mask"
            " and phase."
        )
    if both and not metrics["category_findings"]:
        paragraphs.append(
            "No finding: being like trace 2 would not be worth 0.5 % of the wall time of trace 1 in"
            " any group of calls."
        )
    for trace, alone in ((1, lacking), (2, metrics["only_in_trace2"])):
        if alone:
            time = sum(one["analysis"]["total_us"] for one in alone)
            names = listed([code(name) for name in dict.fromkeys(one["name"] for one in alone)][:3])
            paragraphs.append(
                f"{count(len(alone), 'kind')} of calls {'is' if len(alone) == 1 else 'are'} in"
                f" trace {trace} alone ({names}, {micros(time)}); nothing is said about"
                f" {'it' if len(alone) == 1 else 'them'}."
            )
    return paragraphs


def _together(both: Sequence[Operation]) -> str:
    ours = sum(one["comparison"]["mean_us"] * one["count"] for one in both)
    theirs = sum(
        one["comparison"]["mean_us"] * one["count"] * one["comparison"]["time_ratio"]
        for one in both
    )
    what = "One kind of calls is" if len(both) == 1 else f"{len(both)} kinds of calls are"
    return (
        f"{what} in both: {micros(ours)} in trace 1, and {micros(theirs)} in trace 2 for as many"
        f" calls and as much work, {percent(100 * theirs / ours if ours else None)} of that. Times"
        " of trace 2 are scaled so everywhere below. An efficiency here is the time of trace 2 over"
        " that of trace 1, not a share of a peak."
    )


def _members(finding: Finding, metrics: Metrics) -> list[Operation]:
    known = {operation["op_no"]: operation for operation in metrics["operations"]}
    return [known[member["op_no"]] for member in finding["members"]]


def _heading(finding: Finding, lead: Operation) -> str:
    library = finding["library"]
    known = f" ({cell(library)})" if library not in (None, "", "Unknown") else ""
    return f"P{finding['rank']}: {noun(lead)} {title(lead)}{known}"


def _card(finding: Finding, metrics: Metrics) -> list[str]:
    lead, *more = _members(finding, metrics)
    also = ""
    if more:
        time = sum(-one["difference_ms"] for one in more)
        also = f" {count(len(more), 'more kind')} of such calls would save {micros(time * 1000)}."
    return [
        f"### {_heading(finding, lead)}",
        f"**Insight**: {insight(lead)}{also}",
        f"**Action**: {action(lead)}",
        impact_marker(
            "p_item", finding, [f"**Impact**: impact_score: {number(finding['impact_score'])}"]
        ),
    ]


def _block(finding: Finding, metrics: Metrics) -> list[str]:
    members = _members(finding, metrics)
    lead = members[0]
    numbers = ", ".join(f"operations[{operation['op_no']}]" for operation in members[:6])
    source = f"(Source: metrics.json, category_findings[{finding['rank'] - 1}] and {numbers}.)"
    low, high = (number(finding[key]) for key in ("impact_score_low", "impact_score_high"))
    told = [_identification(one) for one in members[:_MOST_MEMBERS]]
    reasons = [reasoning(lead)]
    reasons += [
        f"In {code(one['name'])} it differs: {reasoning(one)}"
        for one in members[1:_MOST_MEMBERS]
        if title(one) != title(lead)
    ]
    return [
        f"<!-- reasoning-candidate tier=compute rank={finding['rank']} -->",
        f"#### {_heading(finding, lead)}",
        f"**Identification:** {' '.join(told)} {source}",
        "**Data:**",
        table_text(COLUMNS["comparative"] + _MORE, [_row(one) for one in members]),
        f"**Reasoning for Slowdown:** {' '.join(reasons)}",
        f"**Resolution:** {resolution(lead)}",
        "**Impact estimate:**",
        impact_marker(
            "detail_estimate",
            finding,
            [f"- Low end impact_score: {low}", f"- High end impact_score: {high}"],
        ),
    ]


def _identification(operation: Operation) -> str:
    shape, facts, there = operation["perf_params"], operation["comparison"], operation["trace2"]
    where = f" in layers {shape['layers']}" if shape["layers"] else ""
    words = shape_words(operation)
    library = f" by {operation['library']}" if operation["library"] != "Unknown" else ""
    sentences = [
        f"{count(operation['count'], 'call')} of {code(operation['name'])}{where}:"
        f" {kind(operation)}{library}{f', {words}' if words else ''}, {micros(facts['mean_us'])}"
        f" each."
    ]
    by = f" by {there['library']}" if there["library"] != "Unknown" else ""
    sentences.append(
        f"Trace 2 has {count(operation['count_trace2'], 'call')} of {code(there['name'])},"
        f" {kind(there)}{by}, {micros(facts['other_mean_us'])} each."
    )
    if unlike(operation):
        sentences.append(unlike(operation))
    return " ".join(sentences)


def _row(operation: Operation) -> list[str]:
    phase = operation["perf_params"]["phase"]
    suffix = f" ({phase})" if phase in _PHASES else ""
    efficiency, facts = operation["efficiency"], operation["comparison"]
    bound, path = efficiency["bound_type"], operation["launcher_path"]
    return [
        cell(operation["name"]) + suffix,
        cell(operation["args"]),
        MISSING if path == "Not found" else cell(path),
        cell(operation["kernel_name_trunc"]),
        amount(operation["time_ms"], 3),
        amount(operation["t2_time_ms"], 3),
        f"{operation['count']}/{operation['count_trace2']}",
        amount(operation["difference_ms"], 3),
        amount(efficiency["flops_per_byte"], 2),
        f"{bound}-bound" if bound else MISSING,
        _share(facts["roofline_pct"]),
        _share(facts["other_roofline_pct"]),
        _times(facts["floor_ratio"]),
        _times(facts["quality_ratio"]),
        cell(operation["trace2"]["kernel_name_trunc"]),
    ]


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}%"


def _times(value: float | None) -> str:
    return MISSING if value is None else f"x {value:.2f}"
