"""The commands over the whole store: ingest, traces, sql."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trace_sql.command import FORMAT, beside, open_store, say, selection_options, show
from trace_sql.errors import NotATraceError, TraceSqlError

if TYPE_CHECKING:
    from trace_sql.inputs import Input, Skipped
    from trace_sql.store import Ingested


_SIZE = r"(?i)([1-9][0-9]{0,6})\s*([MG])i?B?"
_UNIT = {"M": 10**6, "G": 10**9}
_LEAST = 200 * 10**6
_AROUND_ENGINE = 140 * 10**6
"""Bytes that Python, the engine's code and pieces of text take."""


def _engine_bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Return the bytes that are left for the engine of what a process may take."""
    if value is None:
        return None
    match = re.fullmatch(_SIZE, value.strip())
    size = int(match[1]) * _UNIT[match[2].upper()] if match else 0
    if size < _LEAST:
        raise click.BadParameter(f"{value!r}: give a size of 200MB or more, as 200MB or 1GB")
    return size - _AROUND_ENGINE


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--run", metavar="NAME", help="Name of the run that the traces belong to, as --run baseline."
)
@click.option(
    "--tag", multiple=True, metavar="K=V", help="A remark, as --tag tp=8; can be repeated."
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_engine_bytes,
    help="The most that the process takes while it reads a file, as --memory-limit 200MB. Default:"
    " about 250 MB, whatever the size of the file; less is slower.",
)
@selection_options
@FORMAT
@click.pass_context
def ingest(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    memory_limit: int | None,
    output_format: str,
    **options: Any,
) -> None:
    """Flatten trace files, folders and archives into the store.

    What is said with the options is kept and used whenever the trace is analysed. Of a damaged
    file every whole event is kept; what was repaired or lost is in the view `losses`.

    \b
    Example:
      trace-sql ingest traces/ --run baseline --config config.json --tag gpu=H200
    """
    from trace_sql.database import Database
    from trace_sql.file_table import file_table
    from trace_sql.inputs import Skipped, expand
    from trace_sql.progress import Progress
    from trace_sql.safe_text import utf8
    from trace_sql.selection import settings_from
    from trace_sql.settings import Settings
    from trace_sql.workers import ingest_all

    store = open_store(context, memory_limit)
    settings = settings_from(store, options)
    found = expand(paths)
    inputs, skipped, failures = found.inputs, found.skipped, found.errors
    config = options["config"] and options["config"].absolute()
    if config and config not in [path.absolute() for path in paths]:
        kept = [one for one in inputs if one.path != config]
        skipped += [Skipped(str(config), "it is what --config names")] * (kept != inputs)
        inputs = kept
    with Progress(_ingesting(inputs)) as progress:
        outcomes = ingest_all(store, inputs, settings, progress.files)
    taken: list[tuple[Input, Ingested]] = []
    for one, outcome in zip(inputs, outcomes, strict=True):
        if isinstance(outcome.error, NotATraceError) and not one.named:
            skipped.append(Skipped(one.label, "JSON without a list traceEvents"))
        elif outcome.error:
            failures.append(outcome.error)
        for done in outcome.ingested:
            taken.append((one, done))
            # What other files of this content are called is known from now on, too.
            store.change_settings(done.trace_id, Settings(paths=[utf8(one.label)]))
    if taken:
        with Database(
            store, {done.trace_id: store.settings(done.trace_id) for _, done in taken}
        ) as db:
            table, conflicts = file_table(
                db, taken, skipped, every=output_format in ("json", "csv")
            )
        show([table], output_format)
        for conflict in conflicts:
            say(f"warning: {conflict}")
    else:
        _say_skipped(skipped)
    for error in failures:
        say(f"trace-sql: error: {error}")
    if failures:
        sys.exit(failures[0].exit_code)
    if not taken:
        raise TraceSqlError("no trace found; give .json or .json.gz files or folders with some")


def _say_skipped(skipped: list[Skipped]) -> None:
    from trace_sql.file_table import by_reason

    for names, reason in by_reason(skipped):
        say(f"skipped {names}: {reason}")


def _ingesting(inputs: list[Input]) -> str:
    return f"ingesting {inputs[0].label}" if len(inputs) == 1 else "ingesting"


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
    from trace_sql.progress import Progress
    from trace_sql.selection import find_trace, settings_from

    store = open_store(context)
    chosen = [find_trace(store, word) for word in words[:-1]]
    ids = chosen or [entry.trace_id for entry in store.traces()]
    given = settings_from(store, options)
    settings = {trace_id: store.settings(trace_id).merged(given) for trace_id in ids}
    with Progress("analysing traces") as progress, Database(store, settings, progress.count) as db:
        result = beside(lambda: db.ask(words[-1]))
    show([plain_table("rows", result.columns, result.rows)], output_format)
