"""The commands over the whole store: ingest, traces, sql."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trace_sql.command import FORMAT, beside, open_store, say, selection_options, show
from trace_sql.errors import NotATraceError, TraceSqlError


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--run", metavar="NAME", help="Name of the run that the traces belong to, as --run baseline."
)
@click.option(
    "--tag", multiple=True, metavar="K=V", help="A remark, as --tag tp=8; can be repeated."
)
@selection_options
@FORMAT
@click.pass_context
def ingest(
    context: click.Context, /, paths: tuple[Path, ...], output_format: str, **options: Any
) -> None:
    """Flatten trace files, or all traces of folders, into the store.

    What is said with the options is kept and used whenever the trace is analysed.

    \b
    Example:
      trace-sql ingest traces/ --run baseline --config config.json --tag gpu=H200
    """
    from trace_sql.inputs import expand
    from trace_sql.output import Column, Table
    from trace_sql.selection import Progress, settings_from

    store = open_store(context)
    settings = settings_from(store, options)
    expanded = expand(paths)
    files, skipped = expanded.files, [(one.path, one.reason) for one in expanded.skipped]
    named = [path.absolute() for path in paths]
    config = options["config"] and options["config"].absolute()
    if config in files and config not in named:
        files.remove(config)
        skipped.append((config, "it is what --config names"))
    rows = []
    failures: list[TraceSqlError] = []
    for path in files:
        try:
            with Progress(f"ingesting {path.name}") as progress:
                done = store.ingest(path, settings, progress=progress.bytes)
        except NotATraceError as error:
            if path in named:
                failures.append(error)
                say(f"trace-sql: error: {error}")
            else:
                skipped.append((path, "JSON without a list traceEvents"))
            continue
        except TraceSqlError as error:
            failures.append(error)
            say(f"trace-sql: error: {error}")
            continue
        rows.append((done.trace_id, done.name, "new" if done.fresh else "already stored"))
    columns = (
        Column("trace_id", "Id"),
        Column("name", "Name", wrap=True),
        Column("state", "State"),
    )
    _say_skipped(skipped)
    if not rows and not failures:
        raise TraceSqlError("no trace found; give .json or .json.gz files or folders with some")
    if rows:
        show([Table("traces", "", columns, rows)], output_format)
    if failures:
        sys.exit(failures[0].exit_code)


def _say_skipped(skipped: list[tuple[Path, str]]) -> None:
    """One line a reason: a folder of a run holds many other files."""
    for reason in dict.fromkeys(reason for _, reason in skipped):
        names = [path.name for path, other in skipped if other == reason]
        more = f", ... ({len(names)} files)" if len(names) > 3 else ""
        say(f"skipped {', '.join(names[:3])}{more}: {reason}")


@click.command()
@FORMAT
@click.pass_context
def traces(context: click.Context, /, output_format: str) -> None:
    """List what the store holds.

    \b
    Example:
      trace-sql traces --format json
    """
    from trace_sql.database import Database
    from trace_sql.reports import trace_table

    store = open_store(context)
    with Database(store, {entry.trace_id: entry.settings for entry in store.traces()}) as db:
        show([trace_table(db)], output_format)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[TRACE ...] SELECT")
@selection_options
@FORMAT
@click.pass_context
def sql(
    context: click.Context, /, words: tuple[str, ...], output_format: str, **options: Any
) -> None:
    """Run one SELECT over the views of some or all traces.

    Without TRACE it answers for all traces of the store. It can neither write nor read anything
    but the store. `trace-sql schema` documents the views.

    \b
    Example:
      trace-sql sql TP-0 "select category, sum(dur_ns) from kernels group by all"
    """
    from trace_sql.database import Database
    from trace_sql.output import plain_table
    from trace_sql.selection import Progress, find_trace, settings_from

    store = open_store(context)
    chosen = [find_trace(store, word) for word in words[:-1]]
    ids = chosen or [entry.trace_id for entry in store.traces()]
    given = settings_from(store, options)
    settings = {trace_id: store.settings(trace_id).merged(given) for trace_id in ids}
    with Progress("analysing traces") as progress, Database(store, settings, progress.count) as db:
        result = beside(lambda: db.ask(words[-1]))
    show([plain_table("rows", result.columns, result.rows)], output_format)
