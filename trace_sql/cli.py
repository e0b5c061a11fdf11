"""The command `trace-sql`. stdout is data, stderr is words; exit codes are `errors.ExitCode`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trace_sql import __version__
from trace_sql.attention_report import attention
from trace_sql.catalog import ingest, sql, traces
from trace_sql.command import (
    FILE,
    FORMAT,
    PASS,
    Group,
    numbers,
    opened,
    say,
    say_coverage,
    selection_options,
    show,
    split,
)
from trace_sql.evidence_report import anchors, devices
from trace_sql.hardware_report import hardware
from trace_sql.loop_report import loops


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="trace-sql")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TRACE_SQL_STORE",
    metavar="FOLDER",
    help="Where flattened traces are kept, as --store /data/traces; else TRACE_SQL_STORE, else"
    " the user's cache folder.",
)
@click.pass_context
def main(context: click.Context, store: Path | None) -> None:
    """Forward passes, layers and kernels of LLM profiler traces, by SQL.

    TRACE is a file (flattened into the store on first use) or the name, id or unique prefix of a
    trace in the store. Answers go to stdout, words about them to stderr.

    \b
    Example:
      trace-sql layers TP-0.trace.json.gz --config config.json
    """
    context.obj = store


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

    with split(context, trace, options, "pass_table") as session:
        full = output_format in ("json", "csv")
        table = pass_table(session.db, session.trace_id, session.settings.phase, full=full)
        show([table], output_format)
        say_coverage(session)


@main.command()
@click.argument("trace")
@PASS
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

    with split(context, trace, options) as session:
        db, trace_id = session.db, session.trace_id
        number, why = chosen_pass(db, trace_id, pass_no, session.settings.phase)
        show(layer_tables(db, trace_id, number), output_format)
        say(f"pass {number}: {why}")
        if output_format == "csv":
            say("CSV holds one table: the clusters are left out; --format json has both")
        say_coverage(session)


@main.command()
@click.argument("trace")
@PASS
@click.option(
    "--layer", type=int, required=True, metavar="L", help="The layer, counted from 0: --layer 3."
)
@click.option(
    "--loop",
    type=int,
    default=0,
    metavar="V",
    help="Visit of the layer in a looped model, counted from 0: --loop 1.",
)
@click.option(
    "--compare-layer",
    type=int,
    metavar="M",
    help="A second layer of the pass to compare with, as --compare-layer 2.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "compute-flow", "table", "json", "csv", "markdown"]),
    default="text",
    show_default=True,
    help="text: time by category and the longest kernels; compute-flow: model summary and every"
    " kernel; json: one document, also for two layers.",
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
    """Show the kernels of a layer, longest first, or compare two.

    \b
    Example:
      trace-sql kernels TP-0.trace.json.gz --pass 5 --layer 2 --compare-layer 3
    """
    from trace_sql.flow import Place, kernel_report
    from trace_sql.reports import chosen_pass

    with split(context, trace, options) as session:
        db, trace_id, settings = session.db, session.trace_id, session.settings
        number, why = chosen_pass(db, trace_id, pass_no, settings.phase)
        place = Place(trace_id, number, loop, layer)
        other = None if compare_layer is None else Place(trace_id, number, loop, compare_layer)
        click.echo(kernel_report(db, place, other, output_format, settings), nl=False)
        say(f"pass {number}: {why}")


@main.command()
@click.argument("trace")
@click.option(
    "--pass", "pass_no", type=int, metavar="N", help="Only this pass, as --pass 5. Default: all."
)
@click.option(
    "--unclassified",
    is_flag=True,
    help="The kernels that no rule knows, longest first, with rules to paste into a profile; as"
    " --unclassified --pass 5.",
)
@selection_options
@FORMAT
@click.pass_context
def categories(context: click.Context, /, trace: str, output_format: str, **options: Any) -> None:
    """Show time by category, also of a trace that cannot be split.

    \b
    Example:
      trace-sql categories TP-0.trace.json.gz --unclassified
    """
    from trace_sql.breakdown import category_report

    pass_no, unclassified = options.pop("pass_no"), options.pop("unclassified")
    with opened(context, trace, options) as session:
        phase = session.settings.phase
        text = category_report(
            session.db, session.trace_id, pass_no, phase, unclassified, output_format
        )
    click.echo(text, nl=False)


@main.command()
@click.argument("trace")
@click.option(
    "--pass", "pass_no", type=int, metavar="N", help="Also the layers of this pass, as --pass 5."
)
@click.option(
    "--layers",
    "layer_list",
    metavar="L,...",
    help="Only these layers, as --layers 2,3,38; without --pass of the first steady pass.",
)
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
    """Show where passes and layers stand in the Perfetto UI.

    \b
    Example:
      trace-sql perfetto TP-0.trace.json.gz --pass 5 --layers 2,3,38
    """
    from trace_sql.reports import chosen_pass, perfetto_tables

    wanted = numbers(layer_list)
    with split(context, trace, options, "pass_table") as session:
        db, trace_id, phase = session.db, session.trace_id, session.settings.phase
        why = None
        if pass_no is not None or wanted:
            pass_no, why = chosen_pass(db, trace_id, pass_no, phase)
        tables = perfetto_tables(db, trace_id, pass_no, wanted, phase)
        show(tables[-1:] if output_format == "csv" else tables, output_format)
        if why is not None:
            say(f"pass {pass_no}: {why}")


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

    show(model_tables(config, output_format), output_format)


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
@PASS
@click.option(
    "--layer",
    type=int,
    metavar="L",
    help="The layer whose kernels are listed, as --layer 3. Default: a typical one of each of the"
    " two layer types that take most.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there, whole or not at all, as -o report.md. Default: stdout.",
)
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

    with split(context, trace, options, "pass_table") as session:
        text = checklist(session.db, session.trace_id, pass_no, layer, session.settings)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
        say(f"wrote {output}")


@main.command()
@click.argument("view", required=False)
@FORMAT
def schema(view: str | None, output_format: str) -> None:
    """Document the views, or the columns of one.

    \b
    Example:
      trace-sql schema layers
    """
    from trace_sql.describe import schema_tables

    show(schema_tables(view), output_format)


for command in (anchors, devices, loops, attention, hardware, ingest, traces, sql):
    main.add_command(command)
