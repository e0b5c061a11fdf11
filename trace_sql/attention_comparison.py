"""Attention of one trace against that of another as tables: matches, sums, what it would gain."""

from __future__ import annotations

from trace_sql.database import Database
from trace_sql.literal import sql_string
from trace_sql.output import Column, Table
from trace_sql.reports import view_table


def comparison_tables(
    db: Database, trace_id: str, other: str, *, full: bool = False
) -> list[Table]:
    """Return how attention of `trace_id` compares with that of `other`, operation by operation.

    `full` gives all columns of a match in place of those that a terminal has room for.
    """
    matches = (*_MATCH, *_MORE, _NOTE) if full else _MATCH
    tables = [_pair_table(db, "matches", _TITLE, matches, "comparison_table", (trace_id, other))]
    if not full:
        columns = (Column("match_no", "#"), *_MORE, _NOTE)
        title = "All calls, and what differs besides their time"
        tables.append(
            _pair_table(db, "differences", title, columns, "comparison_table", (trace_id, other))
        )
    return [
        *tables,
        _pair_table(db, "totals", "Together", _TOTALS, "comparison_totals", (trace_id, other)),
        _pair_table(
            db,
            "findings",
            "What trace 1 would gain by being like trace 2, in percent of its wall time",
            _FINDINGS,
            "comparative_findings",
            (trace_id, other),
        ),
    ]


def _pair_table(
    db: Database,
    key: str,
    title: str,
    columns: tuple[Column, ...],
    view: str,
    pair: tuple[str, str],
) -> Table:
    order = {"comparison_totals": "position", "comparative_findings": "rank"}
    condition = f"other_trace_id = {sql_string(pair[1])}"
    return view_table(
        db, key, title, columns, view, pair[0], order.get(view, "match_no"), condition
    )


_TITLE = "Calls of attention: trace 1 (T1) against trace 2 (T2), longest first"
_MATCH = (
    Column("match_no", "#"),
    Column("operation", "Operation", wrap=True),
    Column("shape", "Shape", wrap=True),
    Column("calls", "Calls"),
    Column("mean_us", "T1(us)", 1),
    Column("other_mean_us", "T2(us)", 1),
    Column("time_pct", "T2/T1%", 1),
    Column("floor_ratio", "GPU", 2),
    Column("quality_ratio", "Kernel", 2),
    Column("roofline_pct", "Roof1%", 1),
    Column("other_roofline_pct", "Roof2%", 1),
)
_MORE = (
    Column("phase", "Phase"),
    Column("sum_ms", "T1(ms)", 3),
    Column("other_sum_ms", "T2(ms)", 3),
    Column("pass_ms", "T1 pass(ms)", 3),
    Column("other_pass_ms", "T2 pass(ms)", 3),
    Column("difference_ms", "Diff.(ms)", 3),
    Column("efficiency_pct", "Eff.%", 1),
)
_NOTE = Column("note", "Note", wrap=True)
_TOTALS = (
    Column("part", "Part"),
    Column("n_matches", "Matches"),
    Column("sum_ms", "T1(ms)", 3),
    Column("other_sum_ms", "T2(ms)", 3),
    Column("scaled_ms", "T2 at the work of T1(ms)", 3),
    Column("time_pct", "T2/T1%", 1),
)
_FINDINGS = (
    Column("rank", "Rank"),
    Column("direction", "Direction"),
    Column("bound_type", "Bound"),
    Column("library", "Library", wrap=True),
    Column("impact_score_low", "Low", 2),
    Column("impact_score", "Mid", 2),
    Column("impact_score_high", "High", 2),
    Column("n_members", "Matches"),
)
