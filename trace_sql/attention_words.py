"""Figures and shapes of attention as words of a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trace_sql.safe_text import clean

Operation = Mapping[str, Any]
"""An operation of the metrics."""

_MARKER_WORDS = re.compile(r"<!--|-->|impact-begin|impact-end|reasoning-candidate")
_KINDS = {
    "flash": "flash attention",
    "paged": "paged attention",
    "standard": "a standard attention kernel",
    "unfused": "unfused attention (matrix products with a softmax between)",
    "linear": "linear attention",
    "cache": "writes to the KV cache",
}
_NOUNS = {
    "decode": "Decode attention",
    "prefill": "Prefill attention",
    "mixed": "Attention of mixed steps",
    "train_fwd": "Forward attention",
    "train_bwd": "Backward attention",
}
_LONGEST = 70


def code(text: str | None) -> str:
    """Return a name of the trace as code in a sentence: cut, and nothing that Markdown obeys."""
    shown = clean(text or "unnamed").replace("`", "'")
    shown = _MARKER_WORDS.sub(lambda match: match[0].replace("-", "\u2010"), shown)
    return f"`{shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'}`"


def micros(value: float | None) -> str:
    """Return microseconds in the unit that reads best."""
    if value is None:
        return "an unknown time"
    if value >= 10_000:
        return f"{value / 1000:.1f} ms"
    if value >= 1000:
        return f"{value / 1000:.2f} ms"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} \u00b5s"


def percent(value: float | None) -> str:
    """Return a percentage with the digits that matter."""
    if value is None:
        return "an unknown share"
    if 99.95 <= value < 100:
        return "over 99.9 %"
    return f"{value:.{0 if value >= 100 else 1 if value >= 1 else 2}f} %"


def count(number: float | None, one: str, many: str | None = None) -> str:
    """Return `24 calls`, `1 call`."""
    many = many or f"{one}s"
    if number is None:
        return f"an unknown number of {many}"
    shown = f"{number:,.0f}" if abs(number - round(number)) < 0.05 else f"{number:,.1f}"
    return f"{shown} {one if shown == '1' else many}"


def listed(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def split_problem(problem: str | None) -> tuple[str, str]:
    """Return why something is not known, and as a sentence's begin what would tell it."""
    why, _, remedy = (problem or "the work of a call is not known").rstrip(".").partition(": ")
    return why, remedy[:1].upper() + remedy[1:]


def took(operation: Operation) -> str:
    """Return the time of all its calls."""
    return micros(operation["analysis"]["total_us"])


def parts_of(kernels: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the shares in percent that kernels have of the time of all of them."""
    total = sum(kernel["total_duration_us"] for kernel in kernels)
    return [100 * kernel["total_duration_us"] / (total or 1) for kernel in kernels]


def of_wall(operation: Operation) -> str:
    """Return its share of wall time."""
    return percent(operation["analysis"]["wall_pct"])


def kind(operation: Operation) -> str:
    """Return what kind of attention it is."""
    return _KINDS.get(operation["perf_params"]["implementation"] or "", "attention")


def noun(operation: Operation) -> str:
    """Return what a heading calls it."""
    shape = operation["perf_params"]
    if shape["implementation"] == "cache":
        return "Writing the KV cache"
    if shape["implementation"] == "linear":
        return "Linear attention"
    known = _NOUNS.get(shape["phase"] or "")
    return known or ("Backward attention" if shape["direction"] == "bwd" else "Attention")


def shape_words(operation: Operation) -> str:
    """Return its shape, as `16 heads of 64, 559 tokens, causal, bf16`; empty where unknown."""
    shape = operation["perf_params"]
    if shape["h_q"] is None and shape["n_q"] is None:
        return ""
    parts = []
    if (shape["batch"] or 1) > 1:
        parts.append(f"batch {shape['batch']:,.0f}")
    parts += _heads(shape)
    if not shape["packed"]:
        parts += _lengths(shape)
    parts += _mask(shape)
    if shape["q_dtype"]:
        kv = shape["kv_dtype"]
        other = f" with keys and values in {kv}" if kv and kv != shape["q_dtype"] else ""
        parts.append(shape["q_dtype"] + other)
    if shape["bias_elements"]:
        parts.append(f"a bias of {shape['bias_elements']:,.0f} elements")
    return ", ".join(parts)


def _heads(shape: Mapping[str, Any]) -> list[str]:
    if shape["h_q"] is None:
        return []
    size = ""
    if shape["d_qk"]:
        size = f" of {shape['d_qk']:.0f}"
        if shape["d_v"] and shape["d_v"] != shape["d_qk"]:
            size += f" (values {shape['d_v']:.0f})"
    if shape["implementation"] == "cache":
        return [f"{count(shape['h_kv'] or shape['h_q'], 'head')}{size}"]
    heads = count(shape["h_q"], "head")
    if shape["latent"]:
        return [f"{heads} over one latent cache{size}"]
    if shape["h_kv"] and shape["h_kv"] != shape["h_q"]:
        heads = f"{shape['h_q']:.0f} query heads on {count(shape['h_kv'], 'key head')}"
    return [heads + size]


def _lengths(shape: Mapping[str, Any]) -> list[str]:
    queries, keys = shape["n_q"], shape["n_kv"]
    if queries is None:
        return []
    if keys is None or keys == queries:
        return [count(queries, "token")]
    about = "about " if keys != round(keys) else ""
    return [f"{count(queries, 'query', 'queries')} on {about}{keys:,.0f} keys"]


def _mask(shape: Mapping[str, Any]) -> list[str]:
    mask = shape["mask"] or "unknown"
    if mask == "window":
        size = shape["window_size"]
        return [f"a sliding window of {size:,.0f}" if size else "a sliding window of unknown size"]
    if mask == "topk":
        top = shape["top_k"]
        return [f"the best {top:,.0f} keys" if top else "some best keys"]
    if mask.startswith("causal"):
        return ["causal"]
    return {"dense": [], "chunked": ["in chunks"], "block_sparse": ["block sparse"]}.get(
        mask, ["unknown mask"]
    )


def share(operation: Operation) -> float | None:
    """Return its percentage of the roofline."""
    value = operation["analysis"]["efficiency_pct"]
    return None if value is None else float(value)


def per_call(operation: Operation, key: str) -> float | None:
    """Return a sum over the calls that have it, as a mean of one."""
    facts = operation["analysis"]
    over = facts["n_rated"] if key in ("roofline_us", "floor_us", "tile_us") else operation["count"]
    return float(facts[key] / over) if facts[key] is not None and over else None


def megabytes(operation: Operation) -> str:
    """Return the bytes that a call must move."""
    total = operation["perf_params"]["bytes"]
    if total is None:
        return "an unknown number of bytes"
    size = total / operation["count"]
    unit = next(unit for unit in (1e9, 1e6, 1e3, 1) if size >= unit or unit == 1)
    return f"{size / unit:,.3g} {({1e9: 'GB', 1e6: 'MB', 1e3: 'KB', 1: 'bytes'})[unit]}"


def rate(operation: Operation) -> str:
    """Return what it reaches of its bound, as `2.42 of 5.3 TB/s`."""
    efficiency = operation["efficiency"]
    if efficiency["bound_type"] == "compute":
        peak = efficiency["resolved_peak_maf"]
        return f"{efficiency['tflops_achieved']:,.3g} of {peak:,.0f} TFLOPS"
    return f"{efficiency['tb_s_achieved']:.2f} of {efficiency['resolved_peak_hbm_bw']:.2f} TB/s"


def mean(operation: Operation) -> str:
    """Return the mean time of a call."""
    return micros(operation["analysis"]["mean_us"])


def roof(operation: Operation) -> str:
    """Return the roofline of a call."""
    return micros(per_call(operation, "roofline_us"))


def top(operation: Operation) -> str:
    """Return the kernel that takes most of its time."""
    return code(operation["analysis"]["top_kernel"])


def decodes(operation: Operation) -> bool:
    """Whether reads of a cache, not of the prompt, are most of the bytes."""
    profile = operation["classification"]["workload_profile"]
    return operation["perf_params"]["phase"] == "decode" or (profile["gen_bytes_ratio"] or 0) > 0.5


def is_paged(operation: Operation) -> bool:
    """Whether it is paged attention."""
    return bool(operation["classification"]["is_paged_attention"])
