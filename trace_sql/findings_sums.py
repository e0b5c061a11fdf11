"""The findings of a metrics file, derived again from its operations: gaps, gates, groups, sums.

An operation that is measured against a peak could gain `(1 - efficiency) * time / baseline`: all
of that at the high end, 7/8 in the middle, 3/4 at the low end. One that is not measured counts with
45, 30 and 15 percent of its share. Numbers are compared as far as the rounding of what they come
from allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from trace_sql.findings_markers import GATE
from trace_sql.findings_reader import Fault

SCORES = {"impact_score_low": "0.75", "impact_score": "0.875", "impact_score_high": "1"}
"""Shares of the gap."""
GUESSES = {"impact_score_low": "0.15", "impact_score": "0.30", "impact_score_high": "0.45"}
"""Shares of the time of an operation without an efficiency."""
LEAST = Decimal("0.01")
"""Percent at the high end below which an operation gives no estimate."""
ANOMALY = Decimal(110)
"""Percent above which an efficiency is our error, not a merit."""

_CENT = Decimal("0.01")
_HALF = Decimal("0.00501")
_MILLI = Decimal("0.000501")
_MEMBER = ("operation", "estimate_method", *SCORES, "efficiency_pct", "bound_type", "library")
"""What a member of a finding repeats of its estimate."""


def decimal(value: Any) -> Decimal | None:
    """Return a finite number of JSON, or of a text; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def objects(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list at `key`."""
    value = content.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def metric_faults(metrics: dict[str, Any], scope: str) -> Iterator[Fault]:
    """Yield what in the metrics does not follow from their operations."""
    operations = objects(metrics, "operations")
    estimates = objects(metrics, "impact_estimates")
    findings = objects(metrics, "category_findings")
    count = decimal(metrics.get("operation_count"))
    if count is not None and count != len(operations):
        yield _fault("operation_count", f"is {count}, but {len(operations)} operations are listed")
    baseline = baseline_ms(metrics)
    if baseline is None:
        yield _fault("baseline_ms", "no wall time of the trace; nothing can be a share of it")
    else:
        for operation in operations:
            yield from _share_faults(operation, baseline)
            yield from _roofline_faults(operation, scope)
        yield from _estimate_faults(operations, estimates, baseline, scope)
    yield from _group_faults(estimates, findings, scope)


def baseline_ms(metrics: dict[str, Any]) -> Decimal | None:
    """Return the time in ms that impacts are a share of."""
    usage = metrics.get("gpu_utilization")
    nested = usage.get("total_time_ms") if isinstance(usage, dict) else None
    for value in (metrics.get("baseline_ms"), nested):
        number = decimal(value)
        if number is not None and number > 0:
            return number
    return None


def _share_faults(operation: dict[str, Any], baseline: Decimal) -> Iterator[Fault]:
    name = operation.get("name")
    time, share = decimal(operation.get("time_ms")), decimal(operation.get("percent_of_total"))
    if time is None:
        yield _fault("operations", f"{name!r} has no time_ms")
    elif share is not None:
        low, high = _around(time, baseline)
        if not low - _HALF <= share <= high + _HALF:
            yield _fault(
                "operations",
                f"{name!r}: {time} of {baseline} ms is not {share} percent_of_total",
            )
    efficiency = operation.get("efficiency")
    if not isinstance(efficiency, dict):
        return
    percent = decimal(efficiency.get("efficiency_percent"))
    # A ratio to another trace is no share of a peak.
    of_peak = operation.get("t2_time_ms") is None
    above = percent is not None and percent > ANOMALY
    if of_peak and above != bool(efficiency.get("is_anomaly")):
        yield _fault("operations", f"{name!r}: {percent} % and is_anomaly contradict")


def _roofline_faults(operation: dict[str, Any], scope: str) -> Iterator[Fault]:
    """Yield an efficiency that work, peaks and time of the operation do not give.

    The roofline of all calls is at least that of their sums, and at most the sum of both bounds.
    """
    told = [operation.get(key) for key in ("efficiency", "perf_params", "analysis")]
    efficiency, shape, facts = (one if isinstance(one, dict) else {} for one in told)
    percent, time = decimal(efficiency.get("efficiency_percent")), decimal(operation.get("time_ms"))
    rates = [decimal(efficiency.get(f"resolved_peak_{name}")) for name in ("maf", "hbm_bw")]
    work = [decimal(shape.get(name)) for name in ("flops", "bytes")]
    if scope != "standalone" or facts.get("n_rated") != operation.get("count"):
        return
    if percent is None or not time:
        return
    parts = [
        amount / rate / 10**9
        for amount, rate in zip(work, rates, strict=True)
        if amount is not None and rate
    ]
    low, high = (100 * bound / time for bound in (max(parts, default=0), sum(parts)))
    near = percent * (_MILLI / time + Decimal("0.002")) + _HALF
    if len(parts) == 2 and not low - near <= percent <= high + near:
        yield _fault(
            "operations",
            f"{operation.get('name')!r}: its work and peaks give {low:.2f} to {high:.2f} % in"
            f" {time} ms, not {percent}",
        )


def _around(time: Decimal, baseline: Decimal) -> tuple[Decimal, Decimal]:
    """Return the bounds of a time's share in percent, both being rounded to 0.001 ms."""
    low = max(time - _MILLI, Decimal(0)) / (baseline + _MILLI)
    return 100 * low, 100 * (time + _MILLI) / max(baseline - _MILLI, _MILLI)


def _estimate_faults(
    operations: list[dict[str, Any]],
    estimates: list[dict[str, Any]],
    baseline: Decimal,
    scope: str,
) -> Iterator[Fault]:
    """Yield operations without their estimate, wrong estimates, and those of no operation."""
    left = list(estimates)
    for operation in operations:
        expected = expected_scores(operation, baseline, scope)
        if expected is None:
            continue
        method, bounds = expected
        own = [estimate for estimate in left if _is_of(estimate, operation)]
        # Several operations may have one name and time; numbers tell them apart.
        own.sort(key=lambda estimate: estimate.get("op_no") != operation.get("op_no"))
        right = [
            estimate
            for estimate in own
            if estimate.get("estimate_method") == method and _within(estimate, bounds)
        ]
        if right:
            left.remove(right[0])
            yield from _copy_faults(right[0], operation)
            continue
        low, high = bounds["impact_score"]
        if own:
            left.remove(own[0])
            yield _fault(
                "impact_estimates",
                f"{operation.get('name')!r}: {own[0].get('estimate_method')} with"
                f" {own[0].get('impact_score')}, but its time and efficiency give {method} with"
                f" {low:.2f} to {high:.2f}",
            )
        elif bounds["impact_score_high"][0] >= LEAST:
            yield _fault(
                "impact_estimates", f"{operation.get('name')!r} has none; {method} {high:.2f}"
            )
    for estimate in left:
        yield _fault("impact_estimates", f"{estimate.get('operation')!r} is of no operation")


def _copy_faults(estimate: dict[str, Any], operation: dict[str, Any]) -> Iterator[Fault]:
    """Yield what an estimate says of its operation that the operation does not."""
    efficiency = operation.get("efficiency")
    efficiency = efficiency if isinstance(efficiency, dict) else {}
    pairs = [("library", operation.get("library") or "Unknown")]
    if estimate.get("estimate_method") == "quantified":
        pairs += [("bound_type", efficiency.get("bound_type"))]
        pairs += [("efficiency_pct", efficiency.get("efficiency_percent"))]
    for key, told in pairs:
        copied = estimate.get(key) or ("Unknown" if key == "library" else None)
        if copied is not None and str(copied) != str(told):
            name = operation.get("name")
            yield _fault("impact_estimates", f"{name!r}: {key} {copied}, its operation {told}")


def expected_scores(
    operation: dict[str, Any], baseline: Decimal, scope: str
) -> tuple[str, dict[str, tuple[Decimal, Decimal]]] | None:
    """Return the method of an operation's estimate and the bounds of each score.

    None where it has no estimate at all.
    """
    time = decimal(operation.get("time_ms"))
    if time is None or time <= 0 or operation.get("fusion_flagged"):
        return None
    efficiency = operation.get("efficiency")
    efficiency = efficiency if isinstance(efficiency, dict) else {}
    percent = decimal(efficiency.get("efficiency_percent"))
    low, high = _around(time, baseline)
    if percent is not None and not efficiency.get("is_anomaly"):
        gaps = [max(Decimal(0), 1 - (percent + off) / 100) for off in (_HALF, -_HALF)]
        low, high = low * gaps[0], high * gaps[1]
        if high < LEAST:
            return None
        method, shares = "quantified", SCORES
    elif scope == "standalone":
        method, shares = "heuristic", GUESSES
    else:
        return None
    return method, {
        key: (low * Decimal(share) - _HALF, high * Decimal(share) + _HALF)
        for key, share in shares.items()
    }


def _is_of(estimate: dict[str, Any], operation: dict[str, Any]) -> bool:
    if estimate.get("operation") != operation.get("name"):
        return False
    one, other = decimal(estimate.get("time_ms")), decimal(operation.get("time_ms"))
    return one is None or other is None or abs(one - other) <= Decimal("0.0011")


def _within(estimate: dict[str, Any], bounds: dict[str, tuple[Decimal, Decimal]]) -> bool:
    for key, (low, high) in bounds.items():
        score = decimal(estimate.get(key))
        if score is None or not low <= score <= high:
            return False
    return True


def _group_faults(
    estimates: list[dict[str, Any]], findings: list[dict[str, Any]], scope: str
) -> Iterator[Fault]:
    """Yield findings that are not the sums of their groups, gated, sorted and numbered."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for estimate in estimates:
        groups.setdefault(_group(estimate, scope), []).append(estimate)
    with_category = any(finding.get("category") for finding in findings)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, finding in enumerate(findings, 1):
        if decimal(finding.get("rank")) != number:
            yield _fault("category_findings", f"finding {number} has rank {finding.get('rank')}")
        key = _finding_key(finding, with_category)
        if key in found:
            yield _fault("category_findings", f"finding {number} repeats the group {_words(key)}")
        found[key] = finding
    scores = [decimal(finding.get("impact_score")) or Decimal(0) for finding in findings]
    if scores != sorted(scores, reverse=True):
        yield _fault("category_findings", "are not sorted by impact_score")
    merged: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for key, members in groups.items():
        merged.setdefault(key if with_category else (None, *key[1:]), []).extend(members)
    for key, members in merged.items():
        finding = found.pop(key, {})
        sums = {name: _sum(members, name) for name in SCORES}
        if not finding:
            if sums["impact_score"] >= GATE:
                yield _fault(
                    "category_findings", f"{_words(key)}: {sums['impact_score']} is missing"
                )
            continue
        yield from _sum_faults(key, finding, members, sums)
    for key in found:
        yield _fault("category_findings", f"{_words(key)} follows from no estimate")


def _sum_faults(
    key: tuple[Any, ...],
    finding: dict[str, Any],
    members: list[dict[str, Any]],
    sums: dict[str, Decimal],
) -> Iterator[Fault]:
    if sums["impact_score"] < GATE:
        yield _fault("category_findings", f"{_words(key)}: {sums['impact_score']} is below {GATE}")
    for name, total in sums.items():
        told = decimal(finding.get(name))
        if told is None or abs(told - total) > _CENT / 2 + Decimal("0.000001"):
            yield _fault("category_findings", f"{_words(key)}: {name} {told}, its members {total}")
    count = decimal(finding.get("member_count"))
    if count is not None and count != len(members):
        yield _fault("category_findings", f"{_words(key)}: {count} members, not {len(members)}")
    listed = objects(finding, "members")
    names, right = (sorted(str(one.get("operation")) for one in own) for own in (listed, members))
    if listed and names != right:
        yield _fault("category_findings", f"{_words(key)}: its members are others")
    elif listed:
        estimates = [[_text(one.get(name)) for name in _MEMBER] for one in members]
        for one in listed:
            if [_text(one.get(name)) for name in _MEMBER] not in estimates:
                text = f"{_words(key)}: member {one.get('operation')!r} is not as its estimate"
                yield _fault("category_findings", text)


def _group(estimate: dict[str, Any], scope: str) -> tuple[Any, ...]:
    category = _text(estimate.get("category"))
    if estimate.get("estimate_method") == "heuristic":
        return category, "unmodeled", _text(estimate.get("operation")), "unknown"
    percent = decimal(estimate.get("efficiency_pct"))
    bucket = "all" if scope == "comparative" else _bucket(percent)
    library = _text(estimate.get("library")) or "Unknown"
    return category, _text(estimate.get("bound_type")), library, bucket


def _finding_key(finding: dict[str, Any], with_category: bool) -> tuple[Any, ...]:
    category = _text(finding.get("category")) if with_category else None
    library = _text(finding.get("library")) or "Unknown"
    if finding.get("estimate_method") == "heuristic":
        members = objects(finding, "members")
        library = str(members[0].get("operation")) if members else library
    return category, _text(finding.get("bound_type")), library, _text(finding.get("eff_bucket"))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _bucket(percent: Decimal | None) -> str:
    if percent is None:
        return "unknown"
    return "0-30" if percent < 30 else "30-60" if percent < 60 else "60-100"


def _sum(members: list[dict[str, Any]], name: str) -> Decimal:
    return sum((decimal(member.get(name)) or Decimal(0) for member in members), Decimal(0))


def _words(key: tuple[Any, ...]) -> str:
    return ", ".join(str(part) for part in key if part is not None)


def _fault(key: str, text: str) -> Fault:
    return Fault(0, f"metrics {key}", text)
