"""What a findings file says before its findings: what was found, and what could not be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_sql.attention_words import code, count, listed, micros, percent

_KINDS = {
    "flash": "flash attention",
    "paged": "paged attention",
    "standard": "standard attention kernels",
    "unfused": "unfused attention",
    "linear": "linear attention",
    "cache": "KV cache writes",
}
_IDLE = 50.0
"""Percent of wall time without work from which the program before the GPU is the first concern."""


def opening(metrics: Mapping[str, Any]) -> list[str]:
    """Return paragraphs about the whole of the trace."""
    paragraphs = []
    if metrics["operations"]:
        paragraphs = [_found(metrics), _against(metrics), *_first(metrics), *_nothing(metrics)]
    return [*paragraphs, *_coverage(metrics), *_gaps(metrics)]


def _found(metrics: Mapping[str, Any]) -> str:
    operations = metrics["operations"]
    times: dict[str, float] = {}
    for operation in operations:
        kind = operation["perf_params"]["implementation"] or ""
        times[kind] = times.get(kind, 0.0) + operation["time_ms"]
    ordered = sorted(times, key=lambda kind: -times[kind])
    parts = [
        f"{_KINDS.get(kind, 'other attention')} ({micros(times[kind] * 1000)})" for kind in ordered
    ]
    calls = sum(operation["count"] for operation in operations)
    what = f"of attention in {count(len(operations), 'kind')}: {listed(parts)}. They take"
    if len(parts) == 1:
        what = f"of {_KINDS.get(ordered[0], 'other attention')} take"
        what = what if calls > 1 else f"{what}s"
    back = [one for one in operations if one["category"] == "sdpa_bwd"]
    backward = ""
    if back:
        share = sum(one["time_ms"] for one in back) / max(sum(times.values()), 1e-9)
        backward = f" Backward passes are {percent(100 * share)} of it."
    return (
        f"{count(calls, 'call')} {what} {micros(metrics['total_time_ms'] * 1000)},"
        f" {percent(metrics['percent_of_busy'])} of the time in which the GPU works and"
        f" {percent(metrics['percent_of_compute'])} of the {micros(metrics['baseline_ms'] * 1000)}"
        f" from first to last activity.{backward}"
    )


def _against(metrics: Mapping[str, Any]) -> str:
    hardware = metrics["hardware"]
    if hardware["gpu"] is None:
        return f"No efficiency is given: {hardware['problem'] or 'the GPU is not known'}."
    notes = {one["analysis"]["peak_note"] for one in metrics["operations"]} - {None}
    peaks = sorted(
        {
            f"{one['efficiency']['resolved_peak_maf']:,.0f} TFLOPS"
            f" ({(one['efficiency']['compute_spec'] or '').removeprefix('matrix_')})"
            for one in metrics["operations"]
            if one["efficiency"]["resolved_peak_maf"] is not None
        }
    )
    bandwidth = metrics["category_specific"]["peak_hbm_bw_tbs"]
    kind = "measured" if hardware["peak"] == "measured" else "datasheet"
    told = f"{hardware['gpu']} ({hardware['gpu_source']})"
    rates = listed([*peaks, *([f"{bandwidth:.2f} TB/s"] if bandwidth else [])])
    text = f"Measured against the {kind} peaks of {told}: {rates}." if rates else f"GPU: {told}."
    text += " Efficiency is the roofline of all calls over their time, so long calls weigh more."
    return " ".join([text, *(f"{note.rstrip('.')}." for note in sorted(notes))])


def _first(metrics: Mapping[str, Any]) -> list[str]:
    """Return what comes before any kernel where the GPU waits for the host."""
    idle = metrics["gpu_utilization"]["idle_time_percent"]
    if idle is None or idle < _IDLE or (metrics["percent_of_busy"] or 0) < 5:
        return []
    return [
        f"The GPU has nothing to do for {percent(idle)} of this trace: attention is"
        f" {percent(metrics['percent_of_compute'])} of wall time but"
        f" {percent(metrics['percent_of_busy'])} of the time in which the GPU works. Find out first"
        " what the host does between kernels; until then a faster attention kernel only makes the"
        " GPU wait longer."
    ]


def _nothing(metrics: Mapping[str, Any]) -> list[str]:
    if metrics["category_findings"]:
        return []
    best = max((estimate["impact_score"] for estimate in metrics["impact_estimates"]), default=0.0)
    return [
        "No finding: what these calls could gain together is below 0.5 % of wall time"
        f" in every group, at most {percent(best)} for one of them."
    ]


def _coverage(metrics: Mapping[str, Any]) -> list[str]:
    coverage = metrics["coverage"]
    named, missed = coverage["attention_kernels"] or 0, coverage["without_call"] or 0
    if not missed:
        return []
    names = listed([code(name) for name in coverage["names"][:3]])
    return [
        f"{count(missed, 'kernel')} of {named:,} that attend by their names ({names},"
        f" {micros(coverage['without_call_ms'] * 1000)}) belong to no call and are in no figure."
    ]


def _gaps(metrics: Mapping[str, Any]) -> list[str]:
    """Return what is not known of which operations."""
    reasons: dict[str, list[float]] = {}
    for operation in metrics["operations"]:
        problem = operation["analysis"]["problem"]
        if problem and operation["efficiency"]["efficiency_percent"] is None:
            reasons.setdefault(problem, []).append(operation["time_ms"])
    if metrics["hardware"]["gpu"] is None:
        reasons.pop(metrics["hardware"]["problem"] or "", None)
    return [
        f"Not known for {count(len(times), 'kind')} of calls ({micros(sum(times) * 1000)}):"
        f" {problem.rstrip('.')}."
        for problem, times in sorted(reasons.items(), key=lambda item: -sum(item[1]))[:3]
    ]
