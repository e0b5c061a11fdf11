"""The metrics of a trace's attention: one JSON object that findings are written from.

Forward (`sdpa_fwd`) and backward (`sdpa_bwd`) stand in one object: each operation, estimate and
finding names its `category`, ranks go over both, and `categories` has the sums of each. Numbers
come from views; here they are rounded and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_sql.attention_operation import Row, described, rounded
from trace_sql.database import Database
from trace_sql.output import json_text

_WHOLE = """
    select t.name, s.attention_ms, s.busy_ms, s.wall_ms, s.busy_pct, s.wall_pct,
        c.n_named, c.n_uncovered, c.uncovered_ms, c.uncovered,
        g.gpu, g.gpu_source, g.peak, g.units, g.problem as gpu_problem
    from traces as t
    left join attention_shares as s on s.trace_id = t.trace_id and s.scope = 'trace'
    left join attention_coverage as c on c.trace_id = t.trace_id
    left join trace_gpus as g on g.trace_id = t.trace_id
    where t.trace_id = ?"""
_OPERATIONS = """
    select o.*, c.* exclude (trace_id, op_no), p.path,
        100 * o.sum_us / nullif(sum(o.sum_us) over (partition by o.direction), 0)
        as pct_of_category
    from attention_ops as o
    join attention_causes as c using (trace_id, op_no)
    left join attention_paths as p using (trace_id, op_no)
    where o.trace_id = ? order by op_no"""
_KERNELS = """
    select * exclude (trace_id) from attention_op_kernels where trace_id = ?
    order by op_no, sum_us desc, role, kernel"""
_ESTIMATES = """
    from attention_estimates where trace_id = ? order by impact_score desc, op_no"""
_TIMES = ("attention_ms", "busy_ms", "wall_ms", "busy_pct", "wall_pct")
"""Times as they are; the other keys have them rounded, and prose would round them again."""
_MEMBERS = "from finding_members where trace_id = ? order by rank, position"


def attention_metrics(db: Database, trace_id: str) -> dict[str, Any]:
    """Return the metrics of one trace; `status` is NO_DATA where it has no attention."""
    whole = _first(_rows(db, _WHOLE, trace_id))
    operations = _rows(db, _OPERATIONS, trace_id)
    kernels: dict[int, list[Row]] = {}
    for row in _rows(db, _KERNELS, trace_id):
        kernels.setdefault(row.pop("op_no"), []).append(row)
    estimates = _rows(db, _ESTIMATES, trace_id)
    findings = _rows(db, "from attention_findings where trace_id = ? order by rank", trace_id)
    members = _rows(db, _MEMBERS, trace_id)
    listed = [described(row, kernels.get(row["op_no"], []), whole) for row in operations]
    _relate(listed)
    categories = {
        category: _category([op for op in listed if op["category"] == category])
        for category in ("sdpa_fwd", "sdpa_bwd")
        if any(op["category"] == category for op in listed)
    }
    wall, busy = whole.get("wall_ms"), whole.get("busy_ms")
    working = _percent(busy, wall)
    return {
        "category": next(iter(categories)) if len(categories) == 1 else "sdpa",
        "status": "OK" if listed else "NO_DATA",
        "comparison_scope": "standalone",
        "trace": whole.get("name"),
        "baseline_ms": rounded(wall, 3),
        "gpu_utilization": {
            "total_time_ms": rounded(wall, 3),
            "busy_time_ms": rounded(busy, 3),
            "computation_time_percent": working,
            "idle_time_percent": None if working is None else rounded(100 - working, 2),
        },
        "hardware": {
            "gpu": whole.get("gpu"),
            "gpu_source": whole.get("gpu_source"),
            "peak": whole.get("peak"),
            "units": whole.get("units"),
            "problem": whole.get("gpu_problem"),
        },
        "times": {name: whole.get(name) for name in _TIMES},
        "total_time_ms": rounded(whole.get("attention_ms"), 3),
        "percent_of_compute": rounded(whole.get("wall_pct"), 2),
        "percent_of_busy": rounded(whole.get("busy_pct"), 2),
        "operation_count": len(listed),
        "operations": listed,
        "categories": categories,
        "category_specific": _specific(listed),
        "coverage": {
            "attention_kernels": whole.get("n_named"),
            "without_call": whole.get("n_uncovered"),
            "without_call_ms": rounded(whole.get("uncovered_ms"), 3),
            "names": whole.get("uncovered") or [],
        },
        "impact_estimates": [_estimate(row) for row in estimates],
        "category_findings": [
            _finding(row, [m for m in members if m["rank"] == row["rank"]]) for row in findings
        ],
    }


def error_metrics(message: str, scope: str = "standalone") -> dict[str, Any]:
    """Return the metrics of an analysis that failed with `message`: no figures at all."""
    return {"category": "sdpa", "status": "ERROR", "error": message, "comparison_scope": scope}


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """Return metrics as JSON text."""
    return json_text(dict(metrics))


def _rows(db: Database, sql: str, trace_id: str) -> list[Row]:
    result = db.query(sql, [trace_id])
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


def _first(rows: Sequence[Row]) -> Row:
    return rows[0] if rows else {}


def _percent(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(100 * part / whole, 2)


def _relate(operations: list[dict[str, Any]]) -> None:
    """Note what puts an operation beside another.

    Calls without a roofline may have a twin with one, or a sibling in other layers; kernels of
    backward calls take their time as a multiple of that of the forward ones.
    """
    for one in operations:
        facts = one["analysis"]
        rated = [
            other
            for other in operations
            if other["analysis"]["top_kernel"] == facts["top_kernel"] and other["has_perf_model"]
        ]
        if rated and not one["has_perf_model"]:
            twin = rated[0]
            facts["twin"] = {"op_no": twin["op_no"], "mean_us": twin["analysis"]["mean_us"]}
        elif not one["has_perf_model"]:
            facts["beside"] = next((_sibling(two) for two in operations if _beside(one, two)), None)
        forward = [
            other
            for other in operations
            if other["category"] == "sdpa_fwd" and other["count"] == one["count"]
        ]
        if one["category"] == "sdpa_bwd" and len(forward) == 1:
            ours, theirs = map(_attending_us, (one, forward[0]))
            facts["backward_ratio"] = ours / theirs if theirs else None


def _attending_us(operation: Mapping[str, Any]) -> float:
    facts = operation["analysis"]
    return float(facts["mean_us"] * facts["attend_pct"] / 100)


def _beside(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both are the same kind of calls in different layers."""
    mine, its = one["perf_params"], other["perf_params"]
    same = all(mine[key] == its[key] for key in ("implementation", "direction", "phase"))
    layers = {mine["layers"], its["layers"]}
    return same and len(layers) == 2 and None not in layers and one["count"] == other["count"]


def _sibling(operation: Mapping[str, Any]) -> dict[str, Any]:
    facts = operation["analysis"]
    return {
        "layers": operation["perf_params"]["layers"],
        "mean_us": facts["mean_us"],
        "top_kernel": facts["top_kernel"],
    }


def _category(operations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "total_time_ms": rounded(_total(operations, "time_ms"), 3),
        "percent_of_compute": rounded(_total(operations, "percent_of_total"), 2),
        "operation_count": len(operations),
        "category_specific": _specific(operations),
    }


def _total(operations: Iterable[Mapping[str, Any]], key: str) -> float:
    return sum(float(operation[key] or 0) for operation in operations)


def _specific(operations: list[dict[str, Any]]) -> dict[str, Any]:
    classes = [operation["classification"] for operation in operations]
    flash = sum(one["is_flash_attention"] for one in classes)
    paged = sum(one["is_paged_attention"] for one in classes)
    ctx = sum(one["workload_profile"]["sum_ctx_tokens"] or 0 for one in classes)
    gen = sum(one["workload_profile"]["sum_gen_tokens"] or 0 for one in classes)
    ratio = ctx / (ctx + gen) if ctx + gen else None
    return {
        "flash_attention_count": flash,
        "paged_attention_count": paged,
        "unfused_attention_count": sum(one["attention_type"] == "unfused" for one in classes),
        "has_perf_model_count": sum(one["has_perf_model"] for one in classes),
        "flash_attention_detected": flash > 0,
        "paged_attention_detected": paged > 0,
        "peak_maf_tflops": _known(operations, "resolved_peak_maf"),
        "peak_hbm_bw_tbs": _known(operations, "resolved_peak_hbm_bw"),
        "kernel_breakdown_avg": _breakdown(operations),
        "workload_profile": None
        if ratio is None
        else {
            "total_ctx_tokens": ctx,
            "total_gen_tokens": gen,
            "ctx_ratio": rounded(ratio, 3),
            "profile_type": "prefill_heavy"
            if ratio > 0.8
            else "decode_heavy"
            if ratio < 0.2
            else "mixed",
        },
    }


def _known(operations: list[dict[str, Any]], key: str) -> float | None:
    values = [operation["efficiency"][key] for operation in operations]
    return next((value for value in values if value is not None), None)


def _breakdown(operations: list[dict[str, Any]]) -> dict[str, float] | None:
    """Return the shares of paged attention's parts, each operation by its time."""
    sums: dict[str, float] = {}
    for operation in operations:
        for part in operation["classification"]["kernel_breakdown"]:
            share = (part["percent"] or 0) * operation["time_ms"]
            sums[part["type"]] = sums.get(part["type"], 0.0) + share
    total = sum(sums.values())
    if not total:
        return None
    kinds = ("reshape_cache", "fwd_kernel", "paged_attention")
    return {f"avg_{kind}_percent": round(100 * sums.get(kind, 0) / total, 2) for kind in kinds}


def _estimate(row: Row) -> dict[str, Any]:
    heuristic = row["estimate_method"] == "heuristic"
    return {
        "operation": row["operation"],
        "op_no": row["op_no"],
        "category": row["category"],
        "type": row["type"],
        "estimate_method": row["estimate_method"],
        "impact_score": row["impact_score"],
        "impact_score_low": row["impact_score_low"],
        "impact_score_high": row["impact_score_high"],
        "efficiency_pct": rounded(row["efficiency_pct"], 2),
        "bound_type": None if heuristic else row["bound_type"],
        "library": row["library"],
        "time_ms": rounded(row["time_ms"], 3),
        **({"percent_of_total": rounded(row["percent_of_total"], 2)} if heuristic else {}),
    }


def _finding(row: Row, members: list[Row]) -> dict[str, Any]:
    heuristic = row["estimate_method"] == "heuristic"
    return {
        "rank": row["rank"],
        "category": row["category"],
        "bound_type": row["bound_type"],
        "library": row["library"],
        "eff_bucket": row["eff_bucket"],
        "estimate_method": row["estimate_method"],
        "impact_score": row["impact_score"],
        "impact_score_low": row["impact_score_low"],
        "impact_score_high": row["impact_score_high"],
        "member_count": row["n_members"],
        **({"percent_of_total": rounded(row["percent_of_total"], 2)} if heuristic else {}),
        "members": [{**_estimate(member), "cause": member["cause"]} for member in members],
    }
