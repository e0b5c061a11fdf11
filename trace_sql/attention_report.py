"""The command that holds attention against the roofline of the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trace_sql.command import (
    FILE,
    FORMAT,
    Session,
    open_store,
    say,
    say_all_phases,
    selection_options,
    show,
)
from trace_sql.errors import TraceSqlError, UsageError

if TYPE_CHECKING:
    from trace_sql.database import Database
    from trace_sql.hardware import Hardware

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("trace", required=False)
@click.option(
    "--gpu",
    default="auto",
    show_default=True,
    metavar="NAME|FILE",
    help='The GPU, as --gpu "H100 SXM" (`trace-sql hardware` lists them), or a file with its peaks;'
    " auto: as the trace names it.",
)
@click.option(
    "--peak",
    type=click.Choice(["datasheet", "measured"]),
    default="datasheet",
    show_default=True,
    help="The peak that efficiency is a share of: as printed, or as reached by large matrices.",
)
@click.option(
    "--baseline",
    metavar="OTHER",
    help="Compare with this trace, as --baseline other.trace.json.gz: what TRACE would gain by"
    " being like it.",
)
@click.option(
    "--findings",
    type=_OUTPUT,
    metavar="FILE",
    help="Also write findings, ranked by impact, as --findings findings.md.",
)
@click.option(
    "--metrics",
    type=_OUTPUT,
    metavar="FILE",
    help="Also write the figures that they stand on, as --metrics metrics.json; with --validate:"
    " read them.",
)
@click.option(
    "--validate",
    type=FILE,
    metavar="FILE",
    help="Check a findings file instead, as --validate findings.md --metrics metrics.json.",
)
@selection_options
@FORMAT
@click.pass_context
def attention(
    context: click.Context,
    /,
    trace: str | None,
    gpu: str,
    peak: str,
    baseline: str | None,
    findings: Path | None,
    metrics: Path | None,
    validate: Path | None,
    output_format: str,
    **options: Any,
) -> None:
    """Hold attention against the roofline of the GPU.

    Finds attention by operators, by kernel names (graph replay) and by the order of operators
    (unfused), forward and backward, and shows for each kind of call its work, its bound, and how
    close to the peak of the GPU it runs.

    \b
    Example:
      trace-sql attention TP-0.trace.json.gz --findings findings.md --metrics metrics.json
      trace-sql attention TP-0.trace.json.gz --baseline other/TP-0.trace.json.gz
      trace-sql attention --validate findings.md --metrics metrics.json
    """
    if validate is not None:
        if trace is not None or baseline is not None or findings is not None:
            raise UsageError("--validate checks a file of findings; give only --metrics beside it")
        _check(validate, metrics, output_format)
        return
    if trace is None:
        raise UsageError("give a TRACE, or a file of findings with --validate")
    from trace_sql.attention_tables import attention_tables, coverage
    from trace_sql.hardware import choose_gpu

    full = output_format in ("json", "csv")
    hardware = choose_gpu(gpu, peak)
    say_all_phases(options)
    with (
        _failing(findings, metrics, "standalone" if baseline is None else "comparative"),
        _opened(context, trace, baseline, hardware, options) as (session, other),
    ):
        db, trace_id = session.db, session.trace_id
        if other is None:
            tables = attention_tables(db, trace_id, full=full)
            if not tables[0].rows:
                say(
                    "no attention found: no operator and no kernel of its names, and no softmax"
                    " between two products of matrices"
                )
                # Headings without rows say nothing to people.
                tables = tables if full else tables[-1:]
        else:
            from trace_sql.attention_comparison import comparison_tables

            tables = comparison_tables(db, trace_id, other, full=full)
            tables = tables if full else [table for table in tables if table.rows]
        show(tables, output_format)
        if output_format == "csv":
            say("CSV holds one table, the first; --format json has all")
        say(coverage(db, trace_id))
        texts = _texts(db, trace_id, other, findings, metrics)
    _write(texts)


@contextmanager
def _opened(
    context: click.Context,
    trace: str,
    baseline: str | None,
    hardware: Hardware,
    options: dict[str, Any],
) -> Iterator[tuple[Session, str | None]]:
    """A session of TRACE, and of the trace that it is compared with, whose id comes beside it.

    What describes the model counts for both; what selects a part of a trace for TRACE alone.
    """
    from trace_sql.database import Database
    from trace_sql.evidence import file_warnings
    from trace_sql.selection import choose, find_trace, settings_from

    store = open_store(context)
    trace_id, settings = choose(store, trace, options)
    traces = {trace_id: settings}
    other = None if baseline is None else find_trace(store, baseline)
    if other == trace_id:
        raise UsageError(f"--baseline {baseline} is the same trace as {trace}")
    if other is not None:
        model = {key: options.get(key) for key in _OF_THE_MODEL}
        traces[other] = settings_from(store, model).merged(store.settings(other))
    pairs = [] if other is None else [(trace_id, other)]
    with Database(store, traces, hardware=hardware, pairs=pairs) as db:
        yield Session(db, trace_id, settings), other
        for one in traces:
            for warning in file_warnings(db, one):
                say(f"warning: {warning}")


@contextmanager
def _failing(findings: Path | None, metrics: Path | None, scope: str) -> Iterator[None]:
    """Where the analysis fails, leave files that say so in place of older ones, and no finding."""
    try:
        yield
    except TraceSqlError as error:
        if findings is not None or metrics is not None:
            from trace_sql.attention_findings import findings_text
            from trace_sql.attention_metrics import error_metrics, metrics_text

            content = error_metrics(str(error), scope)
            texts = ((metrics, metrics_text(content)), (findings, findings_text(content)))
            with suppress(TraceSqlError):
                _write([(path, text) for path, text in texts if path is not None])
        raise


def _texts(
    db: Database, trace_id: str, other: str | None, findings: Path | None, metrics: Path | None
) -> list[tuple[Path, str]]:
    """Return findings and what they stand on, of one trace or of two compared, with their files."""
    if findings is None and metrics is None:
        return []
    from trace_sql.attention_metrics import metrics_text

    if other is None:
        from trace_sql.attention_findings import findings_text
        from trace_sql.attention_metrics import attention_metrics

        content, told = attention_metrics(db, trace_id), findings_text
    else:
        from trace_sql.comparison_findings import comparison_text
        from trace_sql.comparison_metrics import comparison_metrics

        content, told = comparison_metrics(db, trace_id, other), comparison_text
    texts = [] if metrics is None else [(metrics, metrics_text(content))]
    return texts if findings is None else [*texts, (findings, told(content))]


def _write(texts: Sequence[tuple[Path, str]]) -> None:
    from trace_sql.checklist import write_text

    for path, text in texts:
        write_text(path, text)
        say(f"wrote {path}")


_OF_THE_MODEL = ("config", "profile", "num_layers")


def _check(findings: Path, metrics: Path | None, output_format: str) -> None:
    """Show what is wrong with a findings file; raises TraceSqlError where anything is."""
    from trace_sql.findings_check import fault_table, validate, verdict_table

    result = validate(findings, metrics)
    told = result.faults or output_format in ("json", "csv")
    show([fault_table(result) if told else verdict_table(result)], output_format)
    for what in result.unchecked:
        say(f"not checked: {what}")
    if result.faults:
        number = f"{len(result.faults)} fault{'s' if len(result.faults) != 1 else ''}"
        raise TraceSqlError(f"{findings}: {number}; mend and check again")
    number = f"{result.n_findings} finding{'s' if result.n_findings != 1 else ''}"
    say(f"{findings}: valid, {number} ({result.scope})")
