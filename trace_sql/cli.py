"""The command `trace-sql`. stdout is data, stderr is words; exit codes are `errors.ExitCode`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trace_sql import __version__
from trace_sql.command import (
    FILE,
    FORMAT,
    Group,
    numbers,
    open_store,
    opened,
    say,
    say_coverage,
    selection_options,
    show,
    split,
    trace_settings,
)
from trace_sql.errors import TraceSqlError


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trace-sql")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TRACE_SQL_STORE",
    help="Folder of flattened traces (TRACE_SQL_STORE; default: the user's cache folder).",
)
@click.pass_context
def main(context: click.Context, store: Path | None) -> None:
    """Forward passes, layers and kernels of LLM profiler traces, by SQL.

    TRACE is a file (flattened into the store on first use) or the name, id or unique prefix of a
    trace in the store.

    \b
    Example:
      trace-sql layers TP-0.trace.json.gz --config config.json
    """
    context.obj = store


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", help="Name of the run that the traces belong to.")
@click.option("--tag", multiple=True, help="A remark as key=value; can be repeated.")
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
    for skipped in expanded.skipped:
        say(f"skipped {skipped.path}: {skipped.reason}")
    if not expanded.files:
        raise TraceSqlError("no trace found; give .json or .json.gz files or folders with some")
    rows = []
    failures: list[TraceSqlError] = []
    for path in expanded.files:
        progress = Progress(f"ingesting {path.name}")
        try:
            done = store.ingest(path, settings, progress=progress.bytes)
        except TraceSqlError as error:
            failures.append(error)
            say(f"error: {error}")
            continue
        finally:
            progress.done()
        rows.append((done.trace_id, done.name, "new" if done.fresh else "already stored"))
    columns = (
        Column("trace_id", "Id"),
        Column("name", "Name", wrap=True),
        Column("state", "State"),
    )
    show([Table("traces", "", columns, rows)], output_format)
    if failures:
        sys.exit(failures[0].exit_code)


@main.command()
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


@main.command()
@click.argument("trace")
@selection_options
@FORMAT
@click.pass_context
def passes(context: click.Context, /, trace: str, output_format: str, **options: Any) -> None:
    """Show all forward passes: cold start, growth, steady state.

    \b
    Example:
      trace-sql passes TP-0.trace.json.gz --config config.json
    """
    from trace_sql.reports import pass_table

    with split(context, trace, options) as (db, trace_id):
        show([pass_table(db, trace_id, options["phase"])], output_format)
        say_coverage(db, trace_id)


@main.command()
@click.argument("trace")
@click.option("--pass", "pass_no", type=int, help="The pass; default: the first steady one.")
@selection_options
@FORMAT
@click.pass_context
def layers(
    context: click.Context, /, trace: str, pass_no: int | None, output_format: str, **options: Any
) -> None:
    """Show the layers of a pass, then their clusters by type.

    \b
    Example:
      trace-sql layers TP-0.trace.json.gz --pass 5
    """
    from trace_sql.reports import chosen_pass, layer_tables

    with split(context, trace, options) as (db, trace_id):
        number, why = chosen_pass(db, trace_id, pass_no, options["phase"])
        say(f"pass {number}: {why}")
        tables = layer_tables(db, trace_id, number)
        if output_format == "csv":
            say("CSV holds one table: the clusters are left out; --format json has both")
        show(tables, output_format)
        say_coverage(db, trace_id)


@main.command()
@click.argument("trace")
@click.option("--pass", "pass_no", type=int, help="The pass; default: the first steady one.")
@click.option("--layer", type=int, required=True, help="The layer, counted from 0.")
@click.option("--loop", type=int, default=0, help="Visit of the layer in a looped model.")
@click.option("--compare-layer", type=int, help="A second layer of the pass to compare with.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "compute-flow", "table", "json", "csv", "markdown"]),
    default="text",
    show_default=True,
    help="text: by category and the hottest; compute-flow: model summary and every kernel.",
)
@selection_options
@click.pass_context
def kernels(
    context: click.Context,
    /,
    trace: str,
    pass_no: int | None,
    layer: int,
    loop: int,
    compare_layer: int | None,
    output_format: str,
    **options: Any,
) -> None:
    """Show the kernels of a layer, longest first, or compare two layers.

    \b
    Example:
      trace-sql kernels TP-0.trace.json.gz --pass 5 --layer 2 --compare-layer 3
    """
    from trace_sql.flow import Place, kernel_report
    from trace_sql.reports import chosen_pass

    with split(context, trace, options) as (db, trace_id):
        number, why = chosen_pass(db, trace_id, pass_no, options["phase"])
        say(f"pass {number}: {why}")
        place = Place(trace_id, number, loop, layer)
        other = None if compare_layer is None else Place(trace_id, number, loop, compare_layer)
        settings = trace_settings(context, trace_id, options)
        click.echo(kernel_report(db, place, other, output_format, settings.config), nl=False)


@main.command()
@click.argument("trace")
@click.option("--pass", "pass_no", type=int, help="Also the layers of this pass.")
@click.option("--layers", "layer_list", help="Only these layers, as 2,3,38.")
@selection_options
@FORMAT
@click.pass_context
def perfetto(
    context: click.Context,
    /,
    trace: str,
    pass_no: int | None,
    layer_list: str | None,
    output_format: str,
    **options: Any,
) -> None:
    """Show where passes and layers stand on the Perfetto UI's time axis.

    \b
    Example:
      trace-sql perfetto TP-0.trace.json.gz --pass 5 --layers 2,3,38
    """
    from trace_sql.reports import chosen_pass, perfetto_tables

    wanted = numbers(layer_list)
    with split(context, trace, options) as (db, trace_id):
        if pass_no is not None or wanted:
            pass_no, why = chosen_pass(db, trace_id, pass_no, options["phase"])
            say(f"pass {pass_no}: {why}")
        tables = perfetto_tables(db, trace_id, pass_no, wanted)
        show(tables[-1:] if output_format == "csv" else tables, output_format)


@main.command()
@click.argument("config", type=FILE)
@FORMAT
def model(config: Path, output_format: str) -> None:
    """Summarise the architecture that a config.json describes.

    \b
    Example:
      trace-sql model config.json
    """
    from trace_sql.describe import model_tables

    show(model_tables(config), output_format)


@main.command()
@click.argument("trace")
@selection_options
@FORMAT
@click.pass_context
def anchors(context: click.Context, /, trace: str, output_format: str, **options: Any) -> None:
    """Explain how the trace was split: rules tried, candidates, evidence, verdict.

    \b
    Example:
      trace-sql anchors TP-0.trace.json.gz --num-layers 36
    """
    from trace_sql.reports import anchor_tables

    with opened(context, trace, options) as (db, trace_id):
        show(anchor_tables(db, trace_id), output_format)


@main.command()
@click.argument("name", required=False)
@FORMAT
def profiles(name: str | None, output_format: str) -> None:
    """List the profiles, or show one: models, boundaries, columns.

    \b
    Example:
      trace-sql profiles gpt_oss
    """
    from trace_sql.describe import profile_tables

    show(profile_tables(name), output_format)


@main.command()
@click.argument("trace")
@click.option("--pass", "pass_no", type=int, help="The pass; default: the first steady one.")
@click.option("--layer", type=int, help="Representative layer; default: of the costliest type.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File.")
@selection_options
@click.pass_context
def report(
    context: click.Context,
    /,
    trace: str,
    pass_no: int | None,
    layer: int | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Write everything in one Markdown document.

    \b
    Example:
      trace-sql report TP-0.trace.json.gz --config config.json -o report.md
    """
    from trace_sql.checklist import checklist, write_text

    with split(context, trace, options) as (db, trace_id):
        settings = trace_settings(context, trace_id, options)
        text = checklist(db, trace_id, pass_no, layer, settings)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
        say(f"wrote {output}")


@main.command()
@click.argument("words", nargs=-1, required=True, metavar="[TRACE ...] SELECT")
@selection_options
@FORMAT
@click.pass_context
def sql(
    context: click.Context, /, words: tuple[str, ...], output_format: str, **options: Any
) -> None:
    """Run one SELECT over the views, for the traces named or all of the store.

    It can neither write nor read anything but the store. `trace-sql schema` documents the views.

    \b
    Example:
      trace-sql sql TP-0 "select category, sum(dur_ns) from kernels group by all"
    """
    from trace_sql.database import Database
    from trace_sql.output import plain_table
    from trace_sql.selection import Progress, find_trace

    store = open_store(context)
    chosen = [find_trace(store, word) for word in words[:-1]]
    ids = chosen or [entry.trace_id for entry in store.traces()]
    settings = {trace_id: trace_settings(context, trace_id, options) for trace_id in ids}
    progress = Progress("analysing traces")
    with Database(store, settings, progress.count) as db:
        result = db.ask(words[-1])
        progress.done()
    show([plain_table("rows", result.columns, result.rows)], output_format)


@main.command()
@click.argument("view", required=False)
@FORMAT
def schema(view: str | None, output_format: str) -> None:
    """Document the views, or one of them: what a row is, and each column.

    \b
    Example:
      trace-sql schema layers
    """
    from trace_sql.describe import schema_tables

    show(schema_tables(view), output_format)
