"""The metrics of a comparison: those of trace 1, with what trace 2 takes for the same.

The form is that of `attention_metrics`, so that the same checks hold. An operation here is a match:
operations of trace 1 that trace 2 has as well are one, named after the longest. Its
`efficiency_percent` is 100 times the time of trace 2 over that of trace 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_sql.attention_metrics import attention_metrics
from trace_sql.database import Database

Row = dict[str, Any]

_MATCHES = """
    select m.*, n.op_no, n.other_op_no, n.note
    from attention_matches as m
    join match_notes as n using (trace_id, other_trace_id, match_no)
    where trace_id = ? and other_trace_id = ? order by match_no"""
_ESTIMATES = """
    from comparative_estimates where trace_id = ? and other_trace_id = ?
    order by impact_score desc, match_no"""
_FINDINGS = """
    from comparative_findings where trace_id = ? and other_trace_id = ? order by rank"""
_MEMBERS = """
    from comparative_members where trace_id = ? and other_trace_id = ?
    order by impact_score desc, match_no"""
_COMPARED = (
    *("level", "op_nos", "other_op_nos", "mean_us", "other_mean_us", "pass_us", "other_pass_us"),
    *("work_ratio", "time_ratio", "floor_ratio", "quality_ratio", "roofline_pct"),
    *("other_roofline_pct", "is_capped", "is_rated", "note"),
)


def comparison_metrics(db: Database, trace_id: str, other: str) -> dict[str, Any]:
    """Return the metrics of `trace_id` against `other`; `db` has both, as a pair.

    `status` is NO_DATA where trace 1 has no attention.
    """
    one, two = (attention_metrics(db, name) for name in (trace_id, other))
    ours = {operation["op_no"]: operation for operation in one["operations"]}
    theirs = {operation["op_no"]: operation for operation in two["operations"]}
    matches = _rows(db, _MATCHES, trace_id, other)
    operations = {
        row["match_no"]: _operation(row, ours, theirs) for row in matches if row["op_nos"]
    }
    estimates = {
        row["match_no"]: _estimate(row, operations[row["match_no"]])
        for row in _rows(db, _ESTIMATES, trace_id, other)
    }
    members = _rows(db, _MEMBERS, trace_id, other)
    alone = [row for row in matches if not row["op_nos"]]
    return {
        **{key: one[key] for key in _OF_TRACE_1},
        "comparison_scope": "comparative",
        "trace2": two["trace"],
        "hardware2": two["hardware"],
        "total_time_ms2": two["total_time_ms"],
        "times2": two["times"],
        "operation_count": len(operations),
        "operations": list(operations.values()),
        "only_in_trace2": [
            _alone(theirs[number]) for row in alone for number in row["other_op_nos"]
        ],
        "impact_estimates": list(estimates.values()),
        "category_findings": [
            _finding(row, [estimates[m["match_no"]] for m in members if m["rank"] == row["rank"]])
            for row in _rows(db, _FINDINGS, trace_id, other)
        ],
    }


_OF_TRACE_1 = (
    *("category", "status", "trace", "baseline_ms", "gpu_utilization", "hardware"),
    *("times", "total_time_ms", "percent_of_compute", "percent_of_busy"),
)


def _rows(db: Database, sql: str, trace_id: str, other: str) -> list[Row]:
    return db.query(sql, [trace_id, other]).dicts()


def _operation(
    row: Row, ours: Mapping[int, Mapping[str, Any]], theirs: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a match as an operation: texts of the longest one, times of all."""
    lead = ours[row["op_no"]]
    there = None if row["other_op_no"] is None else theirs[row["other_op_no"]]
    return {
        **lead,
        "op_no": row["match_no"],
        "count": row["n_calls"],
        "time_ms": _rounded(row["sum_us"], 3, 1e3),
        "percent_of_category": _sum(ours, row["op_nos"], "percent_of_category"),
        "percent_of_total": _rounded(row["pct_of_wall"], 2),
        "percent_of_busy": _sum(ours, row["op_nos"], "percent_of_busy"),
        "efficiency": {
            **lead["efficiency"],
            "efficiency_percent": _rounded(row["efficiency_pct"], 2),
            "roofline_percent": _rounded(row["roofline_pct"], 2),
            "warning": "limited to trace 1's own roofline" if row["is_capped"] else None,
            "is_anomaly": False,
        },
        "t2_time_ms": _rounded(row["other_scaled_us"], 3, 1e3),
        "t2_measured_time_ms": _rounded(row["other_sum_us"], 3, 1e3),
        "count_trace2": row["other_n_calls"],
        "difference_ms": _rounded(row["difference_us"], 3, 1e3),
        "analysis": {**lead["analysis"], "total_us": row["sum_us"]},
        "comparison": {name: row[name] for name in _COMPARED},
        "trace2": None if there is None else _there(there),
    }


def _there(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of trace 2's operation a comparison shows."""
    keys = ("name", "library", "args", "kernel_name", "kernel_name_trunc", "launcher_path")
    return {
        **{key: operation[key] for key in keys},
        "bound_type": operation["efficiency"]["bound_type"],
        "perf_params": operation["perf_params"],
        "cause": operation["analysis"]["cause"],
    }


def _alone(operation: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("category", "name", "count", "time_ms", "args", "library", "kernel_name_trunc")
    return {
        **{key: operation[key] for key in keys},
        "analysis": {"total_us": operation["analysis"]["total_us"]},
    }


def _estimate(row: Row, operation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operation": operation["name"],
        "op_no": row["match_no"],
        "category": operation["category"],
        "type": "kernel_tuning",
        "estimate_method": "quantified",
        "impact_score": row["impact_score"],
        "impact_score_low": row["impact_score_low"],
        "impact_score_high": row["impact_score_high"],
        "efficiency_pct": operation["efficiency"]["efficiency_percent"],
        "bound_type": row["bound_type"],
        "library": row["library"],
        "time_ms": operation["time_ms"],
    }


def _finding(row: Row, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "rank": row["rank"],
        "category": "sdpa_bwd" if row["direction"] == "bwd" else "sdpa_fwd",
        "bound_type": row["bound_type"],
        "library": row["library"],
        "eff_bucket": row["eff_bucket"],
        "estimate_method": row["estimate_method"],
        "impact_score": row["impact_score"],
        "impact_score_low": row["impact_score_low"],
        "impact_score_high": row["impact_score_high"],
        "member_count": row["n_members"],
        "members": list(members),
    }


def _sum(operations: Mapping[int, Mapping[str, Any]], numbers: Sequence[int], key: str) -> float:
    return round(sum(operations[number][key] or 0 for number in numbers), 2)


def _rounded(value: float | None, digits: int, over: float = 1) -> float | None:
    return None if value is None else round(value / over, digits)
