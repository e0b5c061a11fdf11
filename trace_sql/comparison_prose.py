"""What a finding of a comparison says: why trace 2 takes less for the same, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_sql.attention_prose import HITS_UNSEEN, TILES_UNSEEN
from trace_sql.attention_words import Operation, kind, micros, percent, top
from trace_sql.safe_text import clean, escaped

_FUSED = ("flash", "paged")
_LITTLE = 0.05
"""Parts of a ratio this near to 1 explain nothing."""


def title(operation: Operation) -> str:
    """Return the end of the heading of a finding that this match leads."""
    faster = _faster(operation)
    return {
        "unfused": f"is unfused here and fused in trace 2, {faster}",
        "gpu": f"is {faster} in trace 2 by GPU and types",
        "capped": f"is {faster} in trace 2, beyond the roofline here",
        "kernel": f"is {faster} in trace 2 by its kernels",
        "both": f"is {faster} in trace 2 by GPU and kernels",
        "time": f"is {faster} in trace 2",
    }[_why(operation)]


def insight(operation: Operation) -> str:
    """Return what the comparison shows, with the figures that show it."""
    facts = operation["comparison"]
    other = facts["other_mean_us"] * facts["work_ratio"]
    scaled = " for the same work" if abs(facts["work_ratio"] - 1) > 0.001 else ""
    return (
        f"A call takes {micros(facts['mean_us'])} in trace 1 and {micros(other)}{scaled} in trace"
        f" 2: {percent(100 * facts['time_ratio'])} of the time.{_parts(facts)}"
    )


def action(operation: Operation) -> str:
    """Return what to do first."""
    why = _why(operation)
    if why == "unfused":
        return (
            "Move these calls to Flash Attention, as trace 2 has it; it keeps the scores out of"
            " memory."
        )
    if why == "gpu":
        return (
            "Do not expect this from tuning: it is mostly what the other GPU or smaller types give."
            f" {_room(operation)}"
        )
    if why == "capped":
        return (
            "Count on the own roofline, not on trace 2: what is left to gain here is what the"
            f" roofline leaves. {_room(operation)}"
        )
    profile = _profile(operation)
    if operation["trace2"]["library"] != operation["library"]:
        return (
            "Try the attention kernels that trace 2 uses, where they exist for this GPU; if they do"
            f" not, {profile}."
        )
    return (
        "The kernels are of one library, so compare its version and settings in both runs first,"
        f" then {profile}."
    )


def reasoning(operation: Operation) -> str:
    """Return why trace 1 is slower, as far as both traces show."""
    facts, why = operation["comparison"], _why(operation)
    one, two = facts["roofline_pct"], facts["other_roofline_pct"]
    sentences = []
    if why == "unfused":
        sentences.append(
            f"Trace 1 runs {kind(operation)}; trace 2 runs {kind(operation['trace2'])}, which reads"
            " queries, keys and values once and writes no scores."
        )
    if one is not None and two is not None:
        sentences.append(
            f"Trace 1 reaches {percent(one)} of its own roofline and trace 2 {percent(two)} of its."
        )
    if facts["floor_ratio"] is not None:
        sentences.append(_hardware(facts["floor_ratio"]))
    if facts["is_capped"]:
        sentences.append(
            "Trace 2 is faster than this GPU can be at the peaks assumed, so the gain is counted up"
            " to the roofline of trace 1 alone."
        )
    if operation["analysis"]["cause"] == "launch":
        sentences.append(
            "The calls are so short that the time of a launch weighs more than their work."
        )
    if not sentences:
        sentences.append(
            "No roofline is known on both sides, so GPU and kernels cannot be told apart here."
        )
    return " ".join(sentences)


def resolution(operation: Operation) -> str:
    """Return what to do about it, and how to see that it helped."""
    facts, why = operation["comparison"], _why(operation)
    goal = (
        f"Success is a call in {micros(facts['mean_us'] * _reachable(operation))} instead of"
        f" {micros(facts['mean_us'])}."
    )
    if why in ("gpu", "capped"):
        return f"{_room(operation)} {goal} {_unseen(operation)}"
    if why == "unfused":
        return (
            f"Select the flash implementation where the model sets its attention. {goal} A dense"
            " mask, a request for the weights or a type that the kernel does not take are what"
            " usually keeps a framework from it."
        )
    return (
        "Run the calls of trace 1 alone with the kernels of trace 2, or with other versions of"
        f" these, and compare times of a call at this shape. {goal} {_unseen(operation)}"
    )


def unlike(operation: Operation) -> str:
    """Return what differs between both beside the time; empty where nothing does."""
    note = operation["comparison"]["note"]
    return f"Differs: {escaped(clean(note))}." if note else ""


def _why(operation: Operation) -> str:
    """Return which part of the ratio explains most of it."""
    facts = operation["comparison"]
    fused = operation["trace2"]["perf_params"]["implementation"] in _FUSED
    if operation["perf_params"]["implementation"] == "unfused" and fused:
        return "unfused"
    if facts["is_capped"]:
        return "capped"
    gpu, kernels = facts["floor_ratio"], facts["quality_ratio"]
    if gpu is None or kernels is None:
        return "time"
    if kernels > 1 - _LITTLE:
        return "gpu"
    return "kernel" if gpu > 1 - _LITTLE else "both"


def _faster(operation: Operation) -> str:
    ratio = operation["comparison"]["time_ratio"]
    return f"{1 / ratio:.{1 if ratio > 0.1 else 0}f} times as fast"


def _parts(facts: Mapping[str, Any]) -> str:
    gpu, kernels = facts["floor_ratio"], facts["quality_ratio"]
    if gpu is None or kernels is None:
        return ""
    return (
        f" GPU and types alone would make it take {_long(gpu)}, and the kernels {_long(kernels)}."
    )


def _hardware(ratio: float) -> str:
    if ratio > 1 + _LITTLE:
        return (
            f"At their rooflines trace 2 would need {_long(ratio)}, so its GPU is no help for these"
            " calls: its kernels alone win."
        )
    if ratio < 1 - _LITTLE:
        return f"At their rooflines trace 2 would need {_long(ratio)}."
    return "At their rooflines both would need the same time."


def _room(operation: Operation) -> str:
    own = operation["comparison"]["roofline_pct"]
    if own is None:
        return "How much is left on this GPU no roofline tells here."
    return (
        f"On this GPU they reach {percent(own)} of the roofline, which is"
        f" {micros(operation['comparison']['mean_us'] * own / 100)} a call."
    )


def _profile(operation: Operation) -> str:
    """Return what to do about the kernels of trace 1 themselves."""
    if operation["analysis"]["cause"] == "launch":
        return "give each call more to do, by larger batches or packed sequences"
    if operation["efficiency"]["bound_type"] == "memory":
        return f"optimize the memory access of {top(operation)}"
    return f"profile {top(operation)} for tile-size and wave-occupancy tuning"


def _reachable(operation: Operation) -> float:
    return float(operation["efficiency"]["efficiency_percent"]) / 100


def _unseen(operation: Operation) -> str:
    paged = operation["perf_params"]["implementation"] == "paged"
    return HITS_UNSEEN if paged else TILES_UNSEEN


def _long(ratio: float) -> str:
    """Return how long something takes by one part of a ratio alone."""
    if abs(ratio - 1) <= _LITTLE:
        return "as long"
    return f"{ratio:.2f} times as long" if ratio > 1 else f"{ratio:.2g} of the time"
