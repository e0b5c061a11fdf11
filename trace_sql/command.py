"""What all commands share: options, the way to a trace, printing, errors and exit codes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trace_sql.errors import ExitCode, TraceSqlError

if TYPE_CHECKING:
    from trace_sql.database import Database
    from trace_sql.output import Table
    from trace_sql.store import Settings, Store

_Function = TypeVar("_Function", bound=Callable[..., Any])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)

_SELECTION = (
    click.option("--config", type=FILE, help="The model's config.json."),
    click.option("--profile", help="Profile to use; `trace-sql profiles` lists them."),
    click.option("--num-layers", type=int, help="Layers of the model."),
    click.option("--anchor-kernel", help="Part of the name of the kernel that opens blocks."),
    click.option("--blocks-per-layer", type=int, help="Anchors of a layer (--anchor-kernel)."),
    click.option(
        "--anchor-offset", type=int, help="Anchors before layer 0 of the first pass (0-based)."
    ),
    click.option("--pid", help="Only activities with this pid."),
    click.option("--device", type=int, help="Only activities of this device."),
    click.option("--phase", help="Only passes of this phase: prefill, decode, mixed."),
    click.option("--from", "start", type=float, help="Only from this Perfetto second on."),
    click.option("--to", "end", type=float, help="Only up to this Perfetto second."),
    click.option("--capture", type=FILE, help="Trace of the capture of the replayed graph."),
)


def selection_options(function: _Function) -> _Function:
    """Add the options that say what of a trace is meant and how to split it."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_SELECTION), function)


class Group(click.Group):
    """Turns every cause a user can act on into one line and its exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().main(*args, **{**extra, "standalone_mode": False})
        except click.exceptions.Exit as error:
            sys.exit(error.exit_code)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except TraceSqlError as error:
            fail(str(error), error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            fail("interrupted", ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # The reader has enough; what is still buffered goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ExitCode.OK)


def open_store(context: click.Context) -> Store:
    from trace_sql.store import Store, default_folder

    return Store(context.obj or default_folder())


def trace_settings(context: click.Context, trace_id: str, options: dict[str, Any]) -> Settings:
    """What the store knows of the trace, with this command's options in place."""
    from trace_sql.selection import settings_from

    store = open_store(context)
    return store.settings(trace_id).merged(settings_from(store, options))


@contextmanager
def opened(
    context: click.Context, trace: str, options: dict[str, Any]
) -> Iterator[tuple[Database, str]]:
    from trace_sql.database import Database
    from trace_sql.selection import find_trace

    store = open_store(context)
    trace_id = find_trace(store, trace)
    with Database(store, {trace_id: trace_settings(context, trace_id, options)}) as db:
        yield db, trace_id


@contextmanager
def split(
    context: click.Context, trace: str, options: dict[str, Any]
) -> Iterator[tuple[Database, str]]:
    """A database of a trace that could be split; its verdict is the error otherwise."""
    with opened(context, trace, options) as (db, trace_id):
        db.require_split(trace_id)
        yield db, trace_id


def numbers(text: str | None) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: give numbers as 2,3,38", param_hint="--layers"
        ) from None


def show(tables: list[Table], output_format: str) -> None:
    from trace_sql.output import render

    click.echo(render(tables, output_format), nl=False)


def say_coverage(db: Database, trace_id: str) -> None:
    from trace_sql.reports import coverage

    say(coverage(db, trace_id))


def say(text: str) -> None:
    # Data first: what stands on stdout comes before words about it, also in a pipe.
    sys.stdout.flush()
    click.echo(text, err=True)


def fail(text: str, code: int) -> None:
    from trace_sql.output import clean

    say(f"trace-sql: error: {clean(text)}")
    sys.exit(code)
