"""The command that compares the loops of a model."""

from __future__ import annotations

from typing import Any

import click

from trace_sql.command import FORMAT, say, say_coverage, selection_options, show, split


@click.command()
@click.argument("trace")
@click.option(
    "--pass", "pass_no", type=int, metavar="N", help="Also the loops of this pass, as --pass 5."
)
@selection_options
@FORMAT
@click.pass_context
def loops(
    context: click.Context, /, trace: str, pass_no: int | None, output_format: str, **options: Any
) -> None:
    """Compare the loops of a looped model.

    Shows the time of each loop over all complete passes, and how deep passes go.

    \b
    Example:
      trace-sql loops TP-0.trace.json.gz --config config.json --pass 5
    """
    from trace_sql.loop_tables import loop_tables

    with split(context, trace, options) as session:
        tables = loop_tables(session.db, session.trace_id, pass_no, session.settings.phase)
        if tables or output_format == "json":
            show(tables, output_format)
        if not tables:
            say("no loops: each complete pass visits each of its layers once")
        elif output_format == "csv":
            say("CSV holds one table, the first; --format json has all")
        say_coverage(session)
