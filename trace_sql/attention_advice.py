"""What keeps attention from its roofline, and what to do about it: texts for each cause.

They name no vendor's library and claim nothing that a trace does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trace_sql import attention_limits as limits
from trace_sql.attention_words import (
    Operation,
    code,
    count,
    mean,
    micros,
    of_wall,
    per_call,
    percent,
    rate,
    roof,
    share,
    split_problem,
    top,
)

Text = Callable[[Operation], str]


@dataclass(frozen=True)
class Advice:
    """The texts of a cause, each of the operation that leads a finding."""

    insight: Text
    action: Text
    reason: Text
    way: Text


def advice(operation: Operation) -> Advice:
    """Return the texts for what keeps this operation back."""
    return _ADVICE[operation["analysis"]["cause"]]


# Unfused.


def _unfused_insight(operation: Operation) -> str:
    shape, facts = operation["perf_params"], operation["analysis"]
    scores = "its scores"
    if shape["n_q"] and shape["n_kv"]:
        scores = f"{shape['n_q']:,.0f} by {shape['n_kv']:,.0f} scores a head"
    own = ""
    if facts["score_us"]:
        own = f" The traffic of the scores alone needs {micros(per_call(operation, 'score_us'))}."
    return (
        f"Each call writes {scores} to memory and reads them back for softmax and second product:"
        f" {mean(operation)}, where queries, keys, values and output alone ask for"
        f" {roof(operation)}.{own}"
    )


def _unfused_reason(operation: Operation) -> str:
    facts = operation["analysis"]
    rest = max(100 - facts["gemm_pct"] - facts["softmax_pct"], 0)
    return (
        f"A call is {count(facts['n_kernels'], 'kernel')}: matrix products take"
        f" {percent(facts['gemm_pct'])} of the time, the softmax {percent(facts['softmax_pct'])},"
        f" and {percent(rest)} goes to scaling, masks and copies. Nearly all of them read or"
        " write scores, which grow with the square of the length."
    )


def _unfused_way(operation: Operation) -> str:
    least = per_call(operation, "roofline_us")
    expected = (
        "" if least is None else f" At half of its roofline it takes {micros(2 * least)} a call."
    )
    return (
        f"Select a flash kernel where the model sets its attention implementation.{expected} What"
        " usually keeps a framework from it is a dense mask, a request for the weights, or a type"
        " that the kernel does not take; look for these first."
    )


# Copies and fills.


def _copies_insight(operation: Operation) -> str:
    facts = operation["analysis"]
    parts = [
        count(number, what, plural)
        for number, what, plural in (
            (facts["n_copies"], "copy", "copies"),
            (facts["n_fills"], "fill", "fills"),
        )
        if number >= 0.5
    ]
    wasted = facts["copy_pct"] + facts["fill_pct"]
    return (
        f"{percent(wasted)} of the kernel time of a call is no attention but"
        f" {' and '.join(parts) or 'copies and fills'}:"
        f" {micros(facts['mean_us'] * wasted / 100)} of {mean(operation)}."
    )


def _copies_action(operation: Operation) -> str:
    if operation["analysis"]["copy_pct"] >= operation["analysis"]["fill_pct"]:
        return (
            "Hand the operator tensors in the layout that its kernel takes, so that it copies none."
        )
    return "Find out what the operator clears before it runs, and keep that buffer between calls."


def _copies_reason(operation: Operation) -> str:
    core = operation["efficiency"]["core_efficiency_percent"]
    return (
        f"The kernels that attend take {percent(operation['analysis']['attend_pct'])} and on their"
        f" own reach {percent(core)} of the roofline; the whole call reaches"
        f" {percent(share(operation))}."
    )


def _copies_way(_: Operation) -> str:
    return (
        "Check strides and types of query, key and value at the call, and whether the operator pads"
        " head sizes or lengths; each of these makes copies that a matching input avoids."
    )


# Kernels of an earlier generation.


def _older_insight(operation: Operation) -> str:
    return (
        f"These kernels stem from an earlier GPU generation than {operation['analysis']['gpu']} and"
        f" reach {rate(operation)}: {mean(operation)} a call, where the roofline is"
        f" {roof(operation)}."
    )


def _older_action(operation: Operation) -> str:
    first = "Switch to an attention back end that is built for this GPU generation."
    if operation["efficiency"]["bound_type"] == "memory":
        return f"{first} Failing that, optimize the memory access of {top(operation)}."
    return (
        f"{first} Failing that, profile {top(operation)} for tile-size and wave-occupancy tuning."
    )


def _older_reason(operation: Operation) -> str:
    text = (
        f"As its name shows, {top(operation)} was written for GPUs without the bulk copies and wide"
        " matrix instructions that this one needs to come near its peak, so part of the gap is the"
        " kernel's whatever its settings."
    )
    return " ".join([text, *limits.balance(operation)])


def _older_way(operation: Operation) -> str:
    size = operation["perf_params"]["d_qk"]
    what = f"head size {size:.0f}, " if size else ""
    return (
        f"Check that the newer one takes {what}this mask and type, time both at this shape, and"
        " profile the winner."
    )


# What is not measured.


def _unmodeled_insight(operation: Operation) -> str:
    why, _ = split_problem(operation["analysis"]["problem"])
    what = "This call takes" if operation["count"] == 1 else "These calls take"
    each = "" if operation["count"] == 1 else f", {mean(operation)} each"
    return (
        f"{what} {of_wall(operation)} of wall time{each}, and no roofline says whether that is"
        f" long: {why}."
    )


def _unmodeled_action(operation: Operation) -> str:
    _, remedy = split_problem(operation["analysis"]["problem"])
    return f"{remedy or 'Record what is missing'}, then run this again."


def _unmodeled_reason(operation: Operation) -> str:
    twin, beside = operation["analysis"]["twin"], operation["analysis"]["beside"]
    if twin is not None:
        close = abs(operation["analysis"]["mean_us"] / twin["mean_us"] - 1) < 0.1
        so = (
            "what is said there most likely holds here"
            if close
            else "its calls are of another size"
        )
        return (
            f"Operation {twin['op_no']} runs the same kernel with recorded shapes in"
            f" {micros(twin['mean_us'])} a call against {mean(operation)} here, so {so}."
        )
    text = (
        f"The trace shows {mean(operation)} a call and the kernels below it, but not how much work"
        " that is."
    )
    if beside is None:
        return text
    return (
        f"{text} Layers {beside['layers']} run {code(beside['top_kernel'])} in"
        f" {micros(beside['mean_us'])}: two kinds of layers that take turns, as full and sliding"
        " attention do; a model config would tell."
    )


def _error_insight(operation: Operation) -> str:
    return (
        f"At {percent(share(operation))} of the roofline these calls beat what the GPU can do, so"
        " we count too much work for them or too low a peak."
    )


def _error_action(operation: Operation) -> str:
    assumed = operation["perf_params"]["mask_assumption"] or "mask, lengths and types of the calls"
    return f"Check what the figure assumes before acting on it: {assumed}."


_ADVICE: Mapping[str, Advice] = {
    "unfused": Advice(
        _unfused_insight,
        lambda _: (
            "Migrate to a flash attention kernel, which keeps scores on chip: the main lever."
        ),
        _unfused_reason,
        _unfused_way,
    ),
    "launch": Advice(
        limits.launch_insight, limits.launch_action, limits.launch_reason, limits.launch_way
    ),
    "tiles": Advice(
        limits.tiles_insight, limits.tiles_action, limits.tiles_reason, limits.tiles_way
    ),
    "copies": Advice(_copies_insight, _copies_action, _copies_reason, _copies_way),
    "older": Advice(_older_insight, _older_action, _older_reason, _older_way),
    "compute": Advice(
        limits.compute_insight, limits.compute_action, limits.compute_reason, limits.compute_way
    ),
    "bandwidth": Advice(
        limits.bandwidth_insight,
        limits.bandwidth_action,
        limits.bandwidth_reason,
        limits.bandwidth_way,
    ),
    "cache_write": Advice(
        limits.cache_insight, limits.cache_action, limits.cache_reason, limits.cache_way
    ),
    "unmodeled": Advice(
        _unmodeled_insight,
        _unmodeled_action,
        _unmodeled_reason,
        lambda _: "Until the work is known this is a share of time, no statement about kernels.",
    ),
    "model_error": Advice(
        _error_insight,
        _error_action,
        lambda _: (
            "A window, shorter sequences or a narrower type than assumed make a call look"
            " faster than it is."
        ),
        lambda _: "A model config or recorded shapes settle it; then the efficiency counts.",
    ),
}
