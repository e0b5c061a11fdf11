"""How a trace was split, and how much of it an answer stands on."""

from __future__ import annotations

from trace_sql.database import Database
from trace_sql.discovery import proposal_table, proposal_text
from trace_sql.output import Column, Table, render
from trace_sql.reports import view_table


def anchor_report(db: Database, trace_id: str, output_format: str) -> str:
    """Return, in one of FORMATS, the rules tried, the candidates, and what speaks for each pass.

    Where no rule splits the trace, also what the order of its kernels proposes. CSV holds the
    proposals then, else the verdict.
    """
    tables = anchor_tables(db, trace_id)
    (verdict,) = db.query("select verdict from trace_verdicts where trace_id = ?", [trace_id]).rows[
        0
    ]
    if verdict != "refused":
        return render(tables, output_format)
    found = proposal_table(db, trace_id)
    if output_format == "csv" and found.rows:
        return render([found], output_format)
    if output_format in ("json", "csv"):
        return render([*tables, found], output_format)
    parts = [render(tables[:1], output_format), proposal_text(found, output_format)]
    return "\n".join([*parts, render(tables[1:], output_format)])


def anchor_tables(db: Database, trace_id: str) -> list[Table]:
    """Return the rules tried, the candidates, and what speaks for each pass."""
    return [
        view_table(
            db,
            "verdict",
            "Verdict",
            (
                Column("verdict", "Verdict"),
                Column("n_layers", "Layers"),
                Column("n_layers_source", "From"),
                Column("pass_method", "Passes by"),
                Column("n_complete", "Complete"),
                Column("n_cut", "Cut"),
                Column("n_refused", "Refused"),
                Column("message", "Message", wrap=True),
            ),
            "trace_verdicts",
            trace_id,
            "trace_id",
        ),
        view_table(
            db,
            "rules",
            "Boundary rules whose anchor occurs",
            (
                Column("rule", "Rule", wrap=True),
                Column("confidence", "Confidence"),
                Column("hits", "Per pass"),
                Column("n_anchors", "Anchors"),
                Column("n_entries", "Entries"),
                Column("n_streams", "Streams"),
                Column("n_fitting", "Passes"),
                Column("n_refused", "Refused"),
            ),
            "rule_evidence",
            trace_id,
            "n_fitting desc, priority",
        ),
        view_table(
            db,
            "candidates",
            "Kernels that may bound layers",
            (
                Column("simplified_name", "Kernel", wrap=True),
                Column("n_hits", "Hits"),
                Column("n_streams", "Streams"),
                Column("min_gap", "Min gap"),
                Column("median_gap", "Median", 1),
                Column("max_gap", "Max gap"),
                Column("matched", "Matched by", wrap=True),
            ),
            "anchor_candidates",
            trace_id,
            "n_hits desc, name",
        ),
        view_table(
            db,
            "evidence",
            "What speaks for each pass",
            (
                Column("pass_no", "Fwd#"),
                Column("status", "Status"),
                Column("evidence", "Evidence", wrap=True),
                Column("exceptions", "Other order in layers", wrap=True),
            ),
            "passes",
            trace_id,
            "pass_no",
        ),
    ]


def coverage(db: Database, trace_id: str) -> str:
    """Return the line that says how much of the trace an answer stands on."""
    row = db.query("from trace_verdicts where trace_id = ?", [trace_id]).dicts()[0]
    share = 100 * row["layers_sum_ns"] / row["sum_dur_ns"] if row["sum_dur_ns"] else 0.0
    left_out = row["n_activities"] - row["n_selected"]
    parts = [
        f"coverage: {row['n_in_layers']} of {row['n_selected']} activities in layers"
        f" ({share:.1f} % of device time)",
        f"{row['n_linked']} linked to launches",
        *([f"{left_out} outside the selection"] if left_out else []),
        f"{row['n_layers']} layers (from {row['n_layers_source']})",
        f"profile {row['profile']}",
    ]
    return ", ".join(parts)


def warnings(db: Database, trace_id: str) -> list[str]:
    """Return the doubts about the trace's split that any reader of an answer must know."""
    sql = "select warning from trace_warnings where trace_id = ? order by warning"
    return [row[0] for row in db.query(sql, [trace_id]).rows]
