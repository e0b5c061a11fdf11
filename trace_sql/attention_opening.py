"""What a findings file says before its findings: what was found, and what could not be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_sql.attention_words import (
    Operation,
    code,
    count,
    listed,
    micros,
    percent,
    split_problem,
)

_KINDS = {
    "flash": "flash attention",
    "paged": "paged attention",
    "standard": "standard attention kernels",
    "unfused": "unfused attention",
    "linear": "linear attention",
    "cache": "KV cache writes",
}
_SOURCES = {
    "device name": "which the trace names",
    "memory and units": "known by its memory and number of units",
    "option": "chosen with --gpu",
    "file": "as the file given has them",
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
    operations, times = metrics["operations"], metrics["times"]
    sums: dict[str, tuple[float, int]] = {}
    for operation in operations:
        kind = operation["perf_params"]["implementation"] or ""
        time, calls = sums.get(kind, (0.0, 0))
        sums[kind] = time + operation["analysis"]["total_us"], calls + operation["count"]
    ordered = sorted(sums, key=lambda kind: -sums[kind][0])
    calls = sum(operation["count"] for operation in operations)
    what = "attention" if len(ordered) > 1 else _KINDS.get(ordered[0], "other attention")
    sentences = [
        f"{count(calls, 'call')} of {what} {'take' if calls > 1 else 'takes'}"
        f" {micros(times['attention_ms'] * 1000)}, {percent(times['busy_pct'])} of the time in"
        f" which the GPU works and {percent(times['wall_pct'])} of the"
        f" {micros(times['wall_ms'] * 1000)} from first to last activity."
    ]
    if len(ordered) > 1:
        parts = [
            f"{sums[kind][1]:,} are {_KINDS.get(kind, 'other attention')} ({micros(sums[kind][0])})"
            for kind in ordered
        ]
        sentences.append(f"Of these, {listed(parts)}.")
    back = [one["analysis"]["total_us"] for one in operations if one["category"] == "sdpa_bwd"]
    if back:
        share = sum(back) / max(sum(time for time, _ in sums.values()), 1e-9)
        sentences.append(f"Backward passes are {percent(100 * share)} of it.")
    return " ".join([*sentences, *_attending(operations), *_reached(operations)])


def _attending(operations: Sequence[Operation]) -> list[str]:
    """Return how much of the time is attention itself, where operators do more than that."""
    fused = [one for one in operations if one["perf_params"]["implementation"] != "unfused"]
    time = sum(one["analysis"]["total_us"] for one in fused)
    own = sum(
        one["analysis"]["total_us"]
        * (one["analysis"]["attend_pct"] + one["analysis"]["write_pct"])
        / 100
        for one in fused
    )
    if not time or own > 0.8 * time:
        return []
    return [
        f"Only {micros(own)} of this is in kernels that attend; the rest is other work that their"
        " operators do, such as projections and conversions of types."
    ]


def _reached(operations: Sequence[Operation]) -> list[str]:
    """Return what all calls together reach, each counting by its time."""
    rated = [
        one["analysis"]
        for one in operations
        if one["has_perf_model"]
        and not one["efficiency"]["is_anomaly"]
        and one["perf_params"]["implementation"] != "cache"
    ]
    if len(rated) < 2:
        return []
    roof = sum(facts["roofline_us"] for facts in rated)
    time = sum(100 * facts["roofline_us"] / facts["efficiency_pct"] for facts in rated)
    return [
        f"Together, calls with a roofline reach {percent(100 * roof / time)} of it, each counting"
        " by its time."
    ]


def _against(metrics: Mapping[str, Any]) -> str:
    hardware = metrics["hardware"]
    if hardware["gpu"] is None:
        return f"No efficiency is given: {hardware['problem'] or 'the GPU is not known'}."
    rated = [one for one in metrics["operations"] if one["has_perf_model"]]
    told = f"{hardware['gpu']}, {_SOURCES.get(hardware['gpu_source'], hardware['gpu_source'])}"
    if not rated:
        return f"The GPU is {told}. No call has a roofline to hold against its peaks."
    # Asked for measured peaks, those that nobody measured are the datasheet's all the same.
    measured = {
        f"{one['resolved_peak_maf']:,.0f} TFLOPS"
        f" ({(one['compute_spec'] or '').removeprefix('matrix_')})": one["peak_kind"] == "measured"
        for one in (operation["efficiency"] for operation in rated)
        if one["resolved_peak_maf"] is not None
    }
    peaks = sorted(measured)
    bandwidth = metrics["category_specific"]["peak_hbm_bw_tbs"]
    rates = [f"{bandwidth:.2f} TB/s"] if bandwidth else []
    if any(measured.values()):
        words = {True: "as large matrix products reach it", False: "from the datasheet"}
        peaks = [f"{peak} {words[measured[peak]]}" for peak in peaks]
        rates = [f"{rate} from the datasheet" for rate in rates]
    else:
        told = f"the datasheet peaks of {told}"
    notes = {one["analysis"]["peak_note"] for one in rated} - {None}
    text = f"Efficiencies are shares of {listed([*peaks, *rates])}: {told}."
    return " ".join([text, *(f"{note.rstrip('.')}." for note in sorted(notes))])


def _first(metrics: Mapping[str, Any]) -> list[str]:
    """Return what comes before any kernel where the GPU waits for the host."""
    idle = metrics["gpu_utilization"]["idle_time_percent"]
    if idle is None or idle < _IDLE or (metrics["percent_of_busy"] or 0) < 5:
        return []
    times = metrics["times"]
    return [
        f"The GPU has nothing to do for {percent(idle)} of this trace: attention is"
        f" {percent(times['wall_pct'])} of wall time but {percent(times['busy_pct'])} of the time"
        " in which the GPU works. Find out first what the host does between kernels; until then a"
        " faster attention kernel only makes the GPU wait longer."
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
    reasons: dict[str, list[Operation]] = {}
    for operation in metrics["operations"]:
        problem = operation["analysis"]["problem"]
        if problem and operation["efficiency"]["efficiency_percent"] is None:
            reasons.setdefault(problem, []).append(operation)
    if metrics["hardware"]["gpu"] is None:
        reasons.pop(metrics["hardware"]["problem"] or "", None)
    return [_gap(problem, listed) for problem, listed in list(reasons.items())[:3]]


def _gap(problem: str, operations: Sequence[Operation]) -> str:
    calls = sum(operation["count"] for operation in operations)
    time = sum(operation["analysis"]["total_us"] for operation in operations)
    why, remedy = split_problem(problem)
    has = "have" if calls > 1 else "has"
    return (
        f"{count(calls, 'call')} ({micros(time)}) {has} no roofline: {why}."
        f"{f' {remedy}.' if remedy else ''}"
    )
