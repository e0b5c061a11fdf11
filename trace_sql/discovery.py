"""Anchors proposed from the order of kernels alone, for a trace that no boundary rule fits."""

from __future__ import annotations

from trace_sql.database import Database
from trace_sql.output import Column, Table, render
from trace_sql.reports import view_table
from trace_sql.safe_text import readable

_FOR_PROGRAMS = 5
"""Columns at the end of the proposals that text below the table tells people."""


def proposal_table(db: Database, trace_id: str) -> Table:
    """Return kernels that may open the blocks of layers, best first, with options to accept one.

    Empty where no order of kernels repeats.
    """
    return view_table(
        db,
        "proposals",
        "Kernels that may open layers, proposed from the order of kernels alone",
        (
            Column("rank", "#"),
            Column("simplified_name", "Kernel", wrap=True),
            Column("n_layers", "Layers"),
            Column("blocks_per_layer", "A layer"),
            Column("n_passes", "Passes"),
            Column("n_kernels", "Kernels"),
            Column("n_alike", "Alike"),
            Column("n_compared", "Of"),
            Column("reasons", "Why", wrap=True),
            Column("stream", "Stream"),
            Column("name", "Name"),
            Column("begins_behind", "Begins behind"),
            Column("ends_before", "Ends before"),
            Column("options", "Options"),
        ),
        "anchor_proposals",
        trace_id,
        "rank",
    )


def proposal_text(table: Table, output_format: str) -> str:
    """Return proposals for people: the table, where passes break, and the options to paste.

    The options stand on lines of their own, because a folded cell cannot be pasted.
    """
    if not table.rows:
        return "No order of kernels repeats often enough to propose an anchor.\n"
    shown = Table(
        table.key,
        table.title,
        table.columns[:-_FOR_PROGRAMS],
        [row[:-_FOR_PROGRAMS] for row in table.rows],
    )
    behind, before = table.rows[0][-3:-1]
    fence = ["```"] if output_format == "markdown" else []
    breaks = [
        *([f"The first whole pass has its layers behind {readable(behind)}."] if behind else []),
        *([f"Its last layer ends before {readable(before)}."] if before else []),
    ]
    lines = [
        "",
        *breaks,
        "To accept one, add its options to the command:",
        *fence,
        *(f"{row[0]}: {row[-1]}" for row in table.rows),
        *fence,
    ]
    return render([shown], output_format) + "\n".join(lines) + "\n"
