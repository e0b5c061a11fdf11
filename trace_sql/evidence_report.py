"""The commands that show what answers rest on: how a trace was split, what is odd in its file."""

from __future__ import annotations

from typing import Any

import click

from trace_sql.command import FORMAT, opened, say, say_all_phases, selection_options, show


@click.command()
@click.argument("trace")
@selection_options
@FORMAT
@click.pass_context
def anchors(context: click.Context, /, trace: str, output_format: str, **options: Any) -> None:
    """Explain how the trace was split, or why it was not.

    Shows the boundary rules tried, kernels that may bound layers, and what speaks for each pass.
    Where nothing fits, it proposes anchors from the order of kernels, with options to paste.

    \b
    Example:
      trace-sql anchors TP-0.trace.json.gz --num-layers 36
    """
    from trace_sql.evidence import anchor_report

    say_all_phases(options)
    with opened(context, trace, options) as session:
        text = anchor_report(session.db, session.trace_id, output_format)
    click.echo(text, nl=False)


@click.command()
@click.argument("trace")
@selection_options
@FORMAT
@click.pass_context
def devices(context: click.Context, /, trace: str, output_format: str, **options: Any) -> None:
    """Show the time of each device, and what is odd in the file.

    Works for any trace, also one that cannot be split: busy, idle and communication time of each
    device (of each rank in a merged file), activities with and without launches, what could not be
    taken at its word, and the categories of all events.

    \b
    Example:
      trace-sql devices TP-0.trace.json.gz
    """
    from trace_sql.evidence import device_tables

    say_all_phases(options)
    with opened(context, trace, options) as session:
        tables = device_tables(session.db, session.trace_id)
        show(tables, output_format)
        if output_format == "csv":
            say("CSV holds one table, the devices; --format json has all")
        if not tables[0].rows:
            session.db.require_split(session.trace_id)
