"""A findings file and its metrics, written by hand from a few operations, for tests to break."""

from __future__ import annotations

from typing import Any

BASELINE = 200.0
DASH = "\u2014"
HEADS = {
    "standalone": "Operation | Args | Kernel Path | Kernel Name | Time (ms) | %E2E | Count"
    " | FLOPS/Byte | Efficiency | Bound",
    "comparative": "Operation | Args (T1) | Kernel Path | Kernel Name | Trace 1 Time (ms)"
    " | Trace 2 Time (ms) | Count (T1/T2) | Difference (ms) | FLOPS/Byte (T1) | Bound (T1)",
}


def operation(
    name: str, time_ms: float, percent: float | None, bound: str | None, **more: Any
) -> dict[str, Any]:
    """Return an operation of the metrics; `percent` is its efficiency."""
    return {
        "name": name,
        "category": "sdpa_fwd",
        "count": 24,
        "time_ms": time_ms,
        "percent_of_total": round(100 * time_ms / BASELINE, 2),
        "efficiency": {
            "efficiency_percent": percent,
            "bound_type": bound,
            "flops_per_byte": 98.5,
            "resolved_peak_maf": 1307.4,
            "resolved_peak_hbm_bw": 5.3,
            "is_anomaly": percent is not None and percent > 110,
        },
        "args": "(4,12,197,64) bf16<br>(4,12,197,64) bf16",
        "library": "CK",
        "launcher_path": "Encoder > Layer",
        "kernel_name_trunc": "Kernel 1: attn_fwd|x<br>Kernel 2: fill_kernel",
        **more,
    }


def metrics(operations: list[dict[str, Any]], scope: str = "standalone") -> dict[str, Any]:
    """Return the metrics of operations, with the findings that the mission's rules give."""
    estimates = []
    for op in operations:
        percent = op["efficiency"]["efficiency_percent"]
        share = 100 * op["time_ms"] / BASELINE
        known = percent is not None and not op["efficiency"]["is_anomaly"]
        if known:
            gap = max(0.0, 1 - percent / 100) * share
            factors = (0.75 * gap, 0.875 * gap, gap)
        else:
            factors = (0.15 * share, 0.30 * share, 0.45 * share)
        if factors[2] < 0.01:
            continue
        low, mid, high = (round(value, 2) for value in factors)
        estimates.append(
            {
                "operation": op["name"],
                "category": op["category"],
                "type": "kernel_tuning" if known else "unmodeled_significant",
                "estimate_method": "quantified" if known else "heuristic",
                "impact_score": mid,
                "impact_score_low": low,
                "impact_score_high": high,
                "efficiency_pct": percent if known else None,
                "bound_type": op["efficiency"]["bound_type"] if known else None,
                "library": op["library"],
                "time_ms": op["time_ms"],
            }
        )
    groups: dict[Any, list[dict[str, Any]]] = {}
    for estimate in estimates:
        percent = estimate["efficiency_pct"]
        if percent is None:
            key = ("unmodeled", estimate["library"], "unknown", estimate["operation"])
        else:
            bucket = "0-30" if percent < 30 else "30-60" if percent < 60 else "60-100"
            bucket = "all" if scope == "comparative" else bucket
            key = (estimate["bound_type"], estimate["library"], bucket, None)
        groups.setdefault(key, []).append(estimate)
    findings = []
    for (bound, library, bucket, _), members in groups.items():
        scores = {
            name: round(sum(member[name] for member in members), 2)
            for name in ("impact_score", "impact_score_low", "impact_score_high")
        }
        if scores["impact_score"] >= 0.5:
            findings.append(
                {
                    "category": members[0]["category"],
                    "bound_type": bound,
                    "library": library,
                    "eff_bucket": bucket,
                    "estimate_method": members[0]["estimate_method"],
                    **scores,
                    "member_count": len(members),
                    "members": members,
                }
            )
    findings.sort(key=lambda finding: -finding["impact_score"])
    for rank, finding in enumerate(findings, 1):
        finding["rank"] = rank
    return {
        "category": "sdpa_fwd",
        "status": "OK",
        "comparison_scope": scope,
        "baseline_ms": BASELINE,
        "operation_count": len(operations),
        "operations": operations,
        "impact_estimates": estimates,
        "category_findings": findings,
    }


def markdown(content: dict[str, Any]) -> str:
    """Return the findings file of metrics."""
    lines = ["# Attention", "", "Two implementations were found.", "", "## Recommendations", ""]
    for finding in content["category_findings"]:
        low, mid, high = (finding[f"impact_score{end}"] for end in ("_low", "", "_high"))
        lines += [
            f"### P{finding['rank']}: Attention leaves bandwidth unused ({finding['library']})",
            "",
            "**Insight**: the kernels reach a third of the bandwidth.",
            "**Action**: read the cache in longer rows.",
            f"<!-- impact-begin kind=p_item low={low} mid={mid} high={high} -->",
            f"**Impact**: impact_score: {mid}",
            "<!-- impact-end -->",
            "",
        ]
        if finding["estimate_method"] == "heuristic":
            lines += ["> Estimated from its share of the time (`percent_of_total`).", ""]
    lines += ["## Detailed Analysis", ""]
    for finding in content["category_findings"]:
        head = HEADS[content["comparison_scope"]]
        lines += [
            f"<!-- reasoning-candidate tier=compute rank={finding['rank']} -->",
            f"#### P{finding['rank']}: Attention",
            "",
            "**Identification:** flash attention, 24 calls.",
            "",
            "**Data:**",
            "",
            f"| {head} |",
            f"|{'---|' * 10}",
        ]
        for member in finding["members"]:
            (op,) = [op for op in content["operations"] if op["name"] == member["operation"]]
            lines.append(f"| {' | '.join(_cells(op, content['comparison_scope']))} |")
        lines += [
            "",
            "**Reasoning for Slowdown:** the sequences are short.",
            "",
            "**Resolution:** batch more of them.",
            "",
            "**Impact estimate:**",
            "<!-- impact-begin kind=detail_estimate low={impact_score_low}"
            " high={impact_score_high} -->".format(**finding),
            f"- Low end impact_score: {finding['impact_score_low']}",
            f"- High end impact_score: {finding['impact_score_high']}",
            "<!-- impact-end -->",
            "",
        ]
    return "\n".join(lines)


def _cells(op: dict[str, Any], scope: str) -> list[str]:
    efficiency = op["efficiency"]
    percent, bound = efficiency["efficiency_percent"], efficiency["bound_type"]
    texts = (op["name"], op["args"], op["launcher_path"], op["kernel_name_trunc"])
    first = [text.replace("|", "\\|") for text in texts]
    intensity = f"{efficiency['flops_per_byte']:.2f}"
    ends = f"{bound}-bound" if bound else DASH
    if scope == "comparative":
        times = (op["time_ms"], op["t2_time_ms"], op["difference_ms"])
        one, two, more = (f"{time:.3f}" for time in times)
        return [*first, one, two, f"{op['count']}/{op['count_trace2']}", more, intensity, ends]
    peak = "1307.4 TFLOPS" if bound == "compute" else "5.3 TB/s"
    share = f"{percent:.2f}% of {peak}" if percent is not None else DASH
    total = f"{op['percent_of_total']:.2f}"
    return [*first, f"{op['time_ms']:.3f}", total, f"{op['count']}", intensity, share, ends]
