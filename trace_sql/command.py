"""What all commands share: options, the way to a trace, printing, errors and exit codes."""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from trace_sql.errors import ExitCode, TraceSqlError, UsageError

if TYPE_CHECKING:
    from trace_sql.database import Database
    from trace_sql.output import Table
    from trace_sql.store import Settings, Store

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help="How to print the result. JSON has every column at full precision.",
)
PASS = click.option(
    "--pass",
    "pass_no",
    type=int,
    metavar="N",
    help="The pass, as --pass 5. Default: the first steady one.",
)

_SELECTION = (
    click.option(
        "--config",
        type=FILE,
        metavar="FILE",
        help="The model's config.json: layer count, layer types, profile.",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        help="Profile to use, as --profile gpt_oss; `trace-sql profiles` lists them.",
    ),
    click.option(
        "--num-layers",
        type=int,
        metavar="N",
        help="Layers of the model, as --num-layers 36; not needed with --config.",
    ),
    click.option(
        "--anchor-kernel",
        metavar="TEXT",
        help="Part of the name of the kernel that opens each block, as --anchor-kernel"
        " mhc_pre_big_fuse; takes the place of the profile's boundary rules.",
    ),
    click.option(
        "--blocks-per-layer",
        type=click.IntRange(min=1),
        metavar="K",
        help="Anchors of a layer, as --blocks-per-layer 2 (with --anchor-kernel).",
    ),
    click.option(
        "--anchor-offset",
        type=click.IntRange(min=0),
        metavar="I",
        help="Anchors that stand before layer 0 of the first pass, as --anchor-offset 1"
        " (with --anchor-kernel and a layer count).",
    ),
    click.option("--pid", metavar="PID", help="Only activities with this pid, as --pid 0."),
    click.option(
        "--device", type=int, metavar="D", help="Only activities of this device, as --device 0."
    ),
    click.option(
        "--phase",
        metavar="NAME",
        help="Only passes of this phase, as --phase decode (prefill, decode, mixed, verify, draft,"
        " draft_extend, unknown).",
    ),
    click.option(
        "--from",
        "start",
        type=float,
        metavar="S",
        help="Only activities that start at or behind this second of the Perfetto UI, as"
        " --from 0.25.",
    ),
    click.option(
        "--to",
        "end",
        type=float,
        metavar="S",
        help="Only activities that start before this second of the Perfetto UI, as --to 0.5.",
    ),
    click.option(
        "--capture",
        type=FILE,
        metavar="FILE",
        help="Trace of the capture of the graph that is replayed here; it names the modules.",
    ),
)


_STRICT_KEY = "trace_sql.strict"


def _be_strict(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[_STRICT_KEY] = value


STRICT = click.option(
    "--strict",
    is_flag=True,
    expose_value=False,
    callback=_be_strict,
    help="Refuse a trace of which anything was repaired or lost while it was read (exit code 6), as"
    " ingest --strict traces/.",
)


class Session(NamedTuple):
    """An open database of one trace, with the settings it is analysed with."""

    db: Database
    trace_id: str
    settings: Settings


def selection_options(function: _Function) -> _Function:
    """Add the options that say what of a trace is meant and how to split it."""
    options = (*_SELECTION, STRICT)
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), function)


def _choose_store(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        context.find_root().obj = folder


class Group(click.Group):
    """Turns every cause a user can act on into one line and its exit code.

    Each command takes `--store` too, so that it can stand before or behind the command's name.
    """

    def add_command(self, command: click.Command, name: str | None = None) -> None:
        command.params.append(
            click.Option(
                ["--store"],
                type=click.Path(file_okay=False, path_type=Path),
                metavar="FOLDER",
                expose_value=False,
                callback=_choose_store,
                help="Folder of flattened traces, as --store traces.store.",
            )
        )
        super().add_command(command, name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # Click would put an empty line before ours.
            fail("interrupted", ExitCode.INTERRUPTED)

    def main(self, *args: Any, **extra: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            # A terminal of another encoding shows escapes; it is no reason to fail.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            # Without standalone mode click returns the code of --help and --version.
            sys.exit(super().main(*args, **{**extra, "standalone_mode": False}) or ExitCode.OK)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            fail(_usage(error), error.exit_code)
        except TraceSqlError as error:
            fail(str(error), error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            fail("interrupted", ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # The reader has enough.
            _drop_stdout()
            sys.exit(ExitCode.OK)
        except MemoryError:
            fail("out of memory; free some, or select less", ExitCode.FAILED)
        except OSError as error:
            _drop_stdout()
            what = (
                f"{error.filename} cannot be read or" if error.filename else "the answer cannot be"
            )
            fail(f"{what} written ({error.strerror})", ExitCode.FAILED)
        except RuntimeError as error:
            if str(error) == "can't start new thread":
                fail("out of memory; free some, or select less", ExitCode.FAILED)
            # What DuckDB makes of Ctrl-C while it runs a query.
            if str(error) != "Query interrupted":
                raise
            fail("interrupted", ExitCode.INTERRUPTED)
        except Exception as error:
            if not _is_of_engine(error):
                raise
            # No room, or damaged files in the store.
            fail(" ".join(str(error).split("\n\n")[0].split()), ExitCode.FAILED)


def open_store(context: click.Context, memory_limit: int | None = None) -> Store:
    """Return the store that the command line names; see `Store` for `memory_limit`."""
    from trace_sql.safe_text import utf8
    from trace_sql.store import Store, default_folder

    try:
        folder = context.find_root().obj or default_folder()
    except RuntimeError:
        raise UsageError("you have no home folder; name one with --store FOLDER") from None
    if utf8(str(folder)) != str(folder):
        what = "DuckDB opens no folder whose name is not UTF-8; choose another"
        raise UsageError(f"{folder}: {what}")
    strict = context.meta.get(_STRICT_KEY, False)
    return Store(folder, strict=strict, memory_limit=memory_limit)


@contextmanager
def opened(context: click.Context, trace: str, options: dict[str, Any]) -> Iterator[Session]:
    """A session of the trace that `trace` names, with this command's options in place."""
    from trace_sql.database import Database
    from trace_sql.evidence import file_warnings
    from trace_sql.selection import choose

    store = open_store(context)
    trace_id, settings = choose(store, trace, options)
    with Database(store, {trace_id: settings}) as db:
        yield Session(db, trace_id, settings)
        for warning in file_warnings(db, trace_id):
            say(f"warning: {warning}")


@contextmanager
def split(
    context: click.Context, trace: str, options: dict[str, Any], *needed: str
) -> Iterator[Session]:
    """A session of a trace that could be split; its verdict is the error otherwise.

    The views `needed` next are made beside those that tell.
    """
    from trace_sql.evidence import warnings

    with opened(context, trace, options) as session:
        session.db.require_split(session.trace_id, *needed)
        yield session
        for warning in warnings(session.db, session.trace_id):
            say(f"warning: {warning}")


def beside(question: Callable[[], _Result]) -> _Result:
    """Return what `question` returns from another thread; Ctrl-C ends the process at once.

    The engine looks for signals only between its tasks, and those of a user's SQL can be long.
    """
    from concurrent.futures import Future

    answer: Future[_Result] = Future()

    def work() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result()
    except KeyboardInterrupt:
        # Leaving in order would wait for the engine.
        say("trace-sql: error: interrupted")
        os._exit(ExitCode.INTERRUPTED)


def numbers(text: str | None) -> list[int]:
    """Read layer numbers as in 2,3,38; raises UsageError for anything else."""
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--layers {text!r}: give numbers as 2,3,38") from None


def show(tables: list[Table], output_format: str) -> None:
    from trace_sql.output import render

    click.echo(render(tables, output_format), nl=False)


def say_coverage(session: Session) -> None:
    from trace_sql.evidence import coverage

    say(coverage(session.db, session.trace_id))


def say(text: str) -> None:
    from trace_sql.safe_text import readable, utf8

    # Data first: what stands on stdout comes before words about it, also in a pipe.
    if sys.stdout is not None:
        sys.stdout.flush()
    click.echo(readable(utf8(text)), err=True)


def say_all_phases(options: Mapping[str, Any]) -> None:
    """Say that `--phase`, where it was given, selects nothing of what the command shows."""
    if phase := options.get("phase"):
        say(f"--phase {phase} selects nothing here: what follows is of all phases")


def fail(text: str, code: int) -> NoReturn:
    say(f"trace-sql: error: {text}")
    sys.exit(code)


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail on it again."""
    if sys.stdout is None:
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_of_engine(error: Exception) -> bool:
    from trace_sql import engine

    return isinstance(error, engine.Error)


def _usage(error: click.ClickException) -> str:
    """Return a fault of the command line as one line that says where help is."""
    context = getattr(error, "ctx", None)
    path = f"trace-sql {context.info_name}" if context and context.parent else "trace-sql"
    return f"{' '.join(error.format_message().split())} See `{path} --help`."
