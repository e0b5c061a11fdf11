"""What a finding about attention says: written from its figures, a text for each cause.

Sentences name no vendor's library and claim nothing that a trace does not show.
"""

from __future__ import annotations

from collections.abc import Sequence

from trace_sql.attention_advice import advice
from trace_sql.attention_limits import near_launch
from trace_sql.attention_words import (
    Operation,
    code,
    count,
    is_paged,
    kind,
    listed,
    micros,
    noun,
    of_wall,
    parts_of,
    per_call,
    percent,
    shape_words,
    share,
    took,
)

TILES_UNSEEN = "Flash tile size not visible \u2014 profile the kernel for tile-size tuning."
HITS_UNSEEN = "Per-request KV-cache hit rate not visible from trace data."
"""Words for what a trace cannot show."""


def title(operation: Operation) -> str:
    """Return the heading of a finding that this operation leads."""
    what = noun(operation)
    cause = operation["analysis"]["cause"]
    if cause == "cache_write" and near_launch(operation):
        return f"{what} in calls as short as a launch"
    endings = {
        "unfused": "unfused: scores travel through memory",
        "launch": "in calls too short to fill the GPU",
        "tiles": "with too few tiles for the GPU",
        "copies": "slowed by copies and fills in its calls",
        "older": "on kernels older than the GPU",
        "model_error": "above its roofline: the work model needs a check",
        "unmodeled": "without a roofline",
        "compute": f"at {percent(share(operation))} of the compute peak",
    }
    return f"{what} {endings.get(cause, f'at {percent(share(operation))} of the bandwidth')}"


def insight(operation: Operation) -> str:
    """Return what is wrong, with the figures that show it."""
    text = advice(operation).insight(operation)
    facts = operation["analysis"]
    if _has_wrapper(operation):
        share_of_it = 100 * facts["wrapper_us"] / facts["total_us"]
        text += (
            f" Copies of its tensors right around the calls cost {micros(facts['wrapper_us'])}"
            f" more, {percent(share_of_it)} of what the calls themselves take."
        )
    return text


def action(operation: Operation) -> str:
    """Return what to do first."""
    text = advice(operation).action(operation)
    if _has_wrapper(operation):
        text += " Have the wrapper hand over strided tensors instead of copies."
    if operation["analysis"]["write_pct"] > 10 and is_paged(operation):
        text += " Tune the KV cache's block_size for its writes: test 16, 32 and 64."
    return text


def identification(operation: Operation) -> str:
    """Return which calls these are: kernels, shape, layers, workload, and what was assumed."""
    shape, facts = operation["perf_params"], operation["analysis"]
    where = f" in layers {shape['layers']}" if shape["layers"] else ""
    words = shape_words(operation)
    library = f" by {operation['library']}" if operation["library"] != "Unknown" else ""
    time = f"It takes {took(operation)}"
    if operation["count"] > 1:
        time = f"They take {took(operation)}, {micros(facts['mean_us'])} each"
    sentences = [
        f"{count(operation['count'], 'call')} of {code(operation['name'])}{where}:"
        f" {kind(operation)}{library}{f', {words}' if words else ''}.",
        f"{time}: {of_wall(operation)} of wall time and {percent(facts['busy_pct'])} of the time"
        " in which the GPU works.",
        *_workload(operation),
        *_parts(operation),
        *_band(operation),
        *_copies_around(operation),
    ]
    if facts["evidence"] == "kernels":
        sentences.append(
            f"{'They were' if operation['count'] > 1 else 'It was'} recognised by kernel names"
            " alone."
        )
    if shape["mask_assumption"]:
        sentences.append(f"Assumed: {shape['mask_assumption']}.")
    return " ".join(sentences)


def reasoning(operation: Operation) -> str:
    """Return why it is slow, as far as the trace shows."""
    return " ".join([advice(operation).reason(operation), *_floor(operation), *_sides(operation)])


def resolution(operation: Operation) -> str:
    """Return what to do about it, and how to see that it helped."""
    return " ".join([advice(operation).way(operation), *_tuning(operation)])


def others(lead: Operation, operations: Sequence[Operation]) -> str:
    """Return a sentence about the further members of a finding; empty for none."""
    if not operations:
        return ""
    time = sum(operation["analysis"]["total_us"] for operation in (lead, *operations))
    names = listed([_beside(lead, operation) for operation in operations[:2]])
    more = "" if len(operations) < 3 else f" and {count(len(operations) - 2, 'other')}"
    return f"With {names}{more} it is {micros(time)} in all."


def also(lead: Operation, operation: Operation) -> str:
    """Return a sentence that identifies a further member of a finding."""
    words = shape_words(operation)
    known = f", {words}" if words and words != shape_words(lead) else ""
    reached = share(operation)
    rated = "" if reached is None else f", at {percent(reached)} of the roofline"
    beside = _beside(lead, operation)
    calls = f"{operation['count']:,}"
    if not beside.startswith("its calls"):
        calls = count(operation["count"], "call")
    return (
        f"Also {calls} of {beside}{known}:"
        f" {micros(operation['analysis']['mean_us'])} each,"
        f" {of_wall(operation)} of wall time{rated}."
    )


def _beside(lead: Operation, operation: Operation) -> str:
    """Return what tells another member of a finding from the first."""
    if operation["name"] != lead["name"]:
        return code(operation["name"])
    one, other = lead["perf_params"], operation["perf_params"]
    if other["layers"] and other["layers"] != one["layers"]:
        return f"the {other['layer_class'] or 'other'} layers {other['layers']}"
    if other["phase"] != one["phase"] and other["phase"]:
        return f"its calls in {other['phase'].replace('_', ' ')}"
    return "its calls of another shape"


def _has_wrapper(operation: Operation) -> bool:
    """Whether copies around the calls are worth the first word."""
    facts = operation["analysis"]
    return bool((facts["wrapper_us"] or 0) > 0.2 * facts["total_us"])


def _workload(operation: Operation) -> list[str]:
    profile = operation["classification"]["workload_profile"]
    shape = operation["perf_params"]
    sentences = []
    requests, keys = shape["n_requests"], shape["n_kv"]
    if shape["implementation"] == "cache":
        return [f"A call writes {count(shape['n_q'], 'token')}."] if shape["n_q"] else []
    if shape["packed"] and requests and keys:
        tokens = (profile["sum_ctx_tokens"] or 0) + (profile["sum_gen_tokens"] or 0)
        sentences.append(
            f"A call serves {count(requests, 'request')} with {count(tokens, 'new token')} over"
            f" {keys:,.0f} keys{f', {keys / requests:,.0f} a request' if requests > 1 else ''}."
        )
    prompt, rest = profile["sum_ctx_tokens"] or 0, profile["sum_gen_tokens"] or 0
    by_bytes = profile["gen_bytes_ratio"] or 0
    if shape["packed"] and profile["workload_type"] in ("prefill_heavy", "decode_heavy"):
        sentences.append(f"By tokens the workload is {profile['workload_type'].replace('_', '-')}.")
    if prompt > 4 * rest > 0 and by_bytes > 0.3:
        sentences.append(
            f"But generation, {percent(100 * rest / (prompt + rest))} of the tokens, moves"
            f" {percent(100 * by_bytes)} of the bytes."
        )
    pattern, heads = profile["attention_pattern"], profile["gqa_ratio"]
    if pattern in ("GQA", "MQA") and heads:
        sentences.append(
            f"{heads:.0f} query heads share a key head ({pattern}), which shrinks the cache and can"
            " cost a kernel a little efficiency."
        )
    return sentences


def _parts(operation: Operation) -> list[str]:
    kernels = operation["kernel_details_summary"]
    if len(kernels) < 2:
        return []
    shown = [
        f"{code(kernel['kernel'])} {percent(part)}"
        for kernel, part in zip(kernels[:3], parts_of(kernels), strict=False)
    ]
    rest = f", {len(kernels) - 3} more the rest" if len(kernels) > 3 else ""
    whose = "Its" if operation["count"] == 1 else "Their"
    return [f"{whose} kernel time is {listed(shown)}{rest}."]


def _band(operation: Operation) -> list[str]:
    facts = operation["analysis"]
    reached, low, high = share(operation), facts["band_lo"], facts["band_hi"]
    if reached is None or low is None or operation["efficiency"]["is_anomaly"]:
        return []
    guess = " (a guess for backward passes)" if operation["category"] == "sdpa_bwd" else ""
    queries = operation["perf_params"]["n_q"] or 0
    short = ", where overhead outweighs work" if queries < 1024 and not guess else ""
    usual = f"{low:.0f} to {high:.0f} % of the roofline is usual at this length{guess}{short}"
    if facts["in_band"]:
        return [f"{usual}, and {percent(reached)} is within it."]
    side = "below" if reached < low else "above"
    return [f"{usual}; {percent(reached)} is {side} it."]


def _copies_around(operation: Operation) -> list[str]:
    facts = operation["analysis"]
    before, behind = facts["n_before"] or 0, facts["n_behind"] or 0
    if before + behind < 0.5:
        return []
    parts = [
        f"{count(number, 'copy', 'copies')} of {what} size"
        for number, what in ((before, "query, key or value"), (behind, "the output's"))
        if number >= 0.05
    ]
    one = len(parts) == 1 and before + behind < 1.05
    verb, be = ("stands", "is") if one else ("stand", "are")
    return [
        f"Around a call {verb} {listed(parts)}, {micros(facts['wrapper_us'])} in all, that {be} not"
        " in this time."
    ]


def _floor(operation: Operation) -> list[str]:
    """Return what can be gained where tiles or launches keep the roofline out of reach."""
    facts = operation["analysis"]
    floor, roof = facts["floor_us"], facts["roofline_us"]
    if (
        not floor
        or not roof
        or floor < 1.2 * roof
        or facts["floor_kind"] not in ("tiles", "launch")
    ):
        return []
    total = facts["total_us"]
    gain = max(0.0, (total - floor) / total) * (facts["wall_pct"] or 0)
    why = "tiles" if facts["floor_kind"] == "tiles" else "the shortest kernel of this trace"
    return [
        f"Counting {why}, {micros(per_call(operation, 'floor_us'))} a call is the least to hope"
        f" for, worth {percent(gain)} of wall time; the high end below ignores that."
    ]


def _sides(operation: Operation) -> list[str]:
    """Return what stands beside the cause."""
    facts = operation["analysis"]
    sentences = []
    if facts["write_pct"] > 10 and facts["cause"] not in ("unfused", "cache_write"):
        sentences.append(f"Writing new keys to the cache takes {percent(facts['write_pct'])}.")
    if operation["perf_params"]["layer_class"] in _VARIANTS:
        sentences.append(
            "Layers of this shape fall into kinds by kernel or time, as full and sliding attention"
            " do; the trace does not name the mask, so a model config would make this exact."
        )
    if facts["attend_pct"] + facts["write_pct"] < 80 and facts["cause"] not in (
        "unfused",
        "copies",
        "cache_write",
    ):
        sentences.append(
            f"Kernels that attend are {percent(facts['attend_pct'])} of this time; the rest is"
            " other work that the operator does."
        )
    if operation["category"] == "sdpa_bwd":
        sentences.append(_backward(operation))
    return sentences


def _backward(operation: Operation) -> str:
    ratio, shape = operation["analysis"]["backward_ratio"], operation["perf_params"]
    if not ratio:
        return "Backward recomputes the weights and moves more, so it stays below forward."
    work, sizes = 2.5, "with heads of one size"
    if shape["d_qk"] and shape["d_v"]:
        keys, values = shape["d_qk"], shape["d_v"]
        work, sizes = (3 * keys + 2 * values) / (keys + values), "at these head sizes"
    return (
        f"Its kernels that attend take {ratio:.1f} times as long as those of the forward calls;"
        f" five matrix products against two are {work:.2g} times the FLOPs {sizes}."
    )


_VARIANTS = tuple(f"variant {letter}" for letter in "ABCDEFGH")


def _tuning(operation: Operation) -> list[str]:
    shape, facts = operation["perf_params"], operation["analysis"]
    sentences = []
    around = (facts["n_before"] or 0) + (facts["n_behind"] or 0)
    if around >= 0.5 and shape["implementation"] != "unfused":
        sentences.append(
            "If the kernel takes strided tensors, drop the `.contiguous()` calls of the wrapper:"
            f" another {micros(facts['wrapper_us'])}."
        )
    if shape["implementation"] == "paged" and shape["phase"] in ("decode", "mixed"):
        sentences.append(HITS_UNSEEN)
    elif facts["cause"] in ("compute", "tiles", "older"):
        sentences.append(TILES_UNSEEN)
    return sentences
