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


def device_tables(db: Database, trace_id: str) -> list[Table]:
    """Return the devices with their times and links, steps, oddities and categories of events.

    Steps are left out where the program marks none.
    """
    merged, clipped = db.query(
        "select coalesce(bool_or(rank_label is not null), false),"
        " coalesce(bool_or(raw_sum_dur_ms <> sum_dur_ms), false)"
        " from device_table where trace_id = ?",
        [trace_id],
    ).rows[0]
    place = (
        *((Column("rank_label", "Rank", wrap=True),) if merged else ()),
        Column("device", "Device"),
    )
    order = "rank_label, device, pid"
    steps = view_table(
        db,
        "steps",
        "Steps that the program marks, with the work launched inside them",
        (
            Column("step_no", "Step"),
            Column("name", "Name", wrap=True),
            Column("n_kernels", "Kernels"),
            Column("n_launches", "Launches"),
            Column("n_via_graph", "By graph"),
            Column("start_s", "Start(s)", 6),
            Column("wall_ms", "Wall(ms)", 3),
            Column("busy_ms", "Busy(ms)", 3),
            Column("sum_dur_ms", "Sum(ms)", 3),
        ),
        "step_table",
        trace_id,
        "step_no",
    )
    return [
        view_table(
            db,
            "devices",
            "Time of each device; exposed: communication that no other kernel hides",
            (
                *place,
                Column("n_activities", "Count"),
                Column("n_kernels", "Kernels"),
                Column("span_ms", "Span(ms)", 3),
                Column("busy_ms", "Busy(ms)", 3),
                Column("idle_ms", "Idle(ms)", 3),
                Column("sum_dur_ms", "Sum(ms)", 3),
                *((Column("raw_sum_dur_ms", "In file(ms)", 3),) if clipped else ()),
                Column("comm_sum_ms", "Comm(ms)", 3),
                Column("exposed_comm_ms", "Exposed(ms)", 3),
            ),
            "device_table",
            trace_id,
            order,
        ),
        view_table(
            db,
            "links",
            "Activities of each device and what is known of them",
            (
                *place,
                Column("n_activities", "Count"),
                Column("n_linked", "Linked"),
                Column("n_unlinked", "No launch"),
                Column("n_via_graph", "By graph"),
                Column("n_before_launch", "Early"),
                Column("n_without_time", "No time"),
                Column("n_without_dur", "No dur"),
                Column("n_overruns", "Overrun"),
                Column("n_repeated", "Repeated"),
            ),
            "device_table",
            trace_id,
            order,
        ),
        *([steps] if steps.rows else []),
        view_table(
            db,
            "oddities",
            "What could not be taken at its word",
            (
                Column("oddity", "Oddity"),
                Column("n", "Count"),
                Column("first_event_id", "First event"),
                Column("what", "What it is, and what becomes of it", wrap=True),
            ),
            "trace_oddities",
            trace_id,
            "oddity",
        ),
        view_table(
            db,
            "event_categories",
            "Categories of all events",
            (
                Column("cat", "Category"),
                Column("ph", "Phase"),
                Column("taken_as", "Taken as"),
                Column("n_events", "Events"),
            ),
            "event_categories",
            trace_id,
            "n_events desc, cat, ph",
        ),
    ]


def coverage(db: Database, trace_id: str) -> str:
    """Return the line that says how much of the trace an answer stands on."""
    row = db.query("from trace_verdicts where trace_id = ?", [trace_id]).dicts()[0]
    work = db.query("from trace_work where trace_id = ?", [trace_id]).dicts()[0]
    share = 100 * row["layers_sum_ns"] / row["sum_dur_ns"] if row["sum_dur_ns"] else 0.0
    counts = (
        (row["n_activities"] - row["n_selected"], "outside the selection"),
        (work["n_without_time"], "without a time"),
        (work["n_without_dur"], "without a duration"),
        (work["n_before_launch"], "before their launch"),
        (work["n_overruns"], "of impossible duration"),
        (work["n_repeated"], "recorded twice"),
    )
    parts = [
        f"coverage: {row['n_in_layers']} of {row['n_selected']} activities in layers"
        f" ({share:.1f} % of device time)",
        f"{row['n_linked']} linked to launches",
        *(f"{count} {what}" for count, what in counts if count),
        f"{row['n_layers']} layers (from {row['n_layers_source']})",
        f"profile {row['profile']}",
    ]
    return ", ".join(parts)


def file_warnings(db: Database, trace_id: str) -> list[str]:
    """Return what any reader of an answer must know about the file that it is from."""
    sql = "select warning from file_warnings where trace_id = ?"
    return [row[0] for row in db.query(sql, [trace_id]).rows]


def warnings(db: Database, trace_id: str) -> list[str]:
    """Return the doubts about the trace's split that any reader of an answer must know."""
    sql = "select warning from trace_warnings where trace_id = ? order by warning"
    return [row[0] for row in db.query(sql, [trace_id]).rows]
