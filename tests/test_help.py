"""Help: every option explained with an example, the same options everywhere, nothing loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from command_line import ROOT, Run

from trace_sql.cli import main
from trace_sql.command import selection_options


def options_of(command: click.Command) -> Iterator[click.Option]:
    yield from (one for one in command.params if isinstance(one, click.Option))


@pytest.mark.parametrize("name", sorted(main.commands))
def test_each_option_is_explained_with_an_example(name: str) -> None:
    for option in options_of(main.commands[name]):
        words = option.help or ""
        assert len(words) > 10, option.name
        simple = isinstance(option.type, click.Choice) or option.metavar in {"FILE", "TEXT"}
        assert simple or re.search(r"--[a-z-]+ \S+|-o \S+", words), f"{option.name}: no example"


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_list_of_commands_says_each_whole(run: Run, name: str) -> None:
    assert re.search(rf"^  {name} +.*[^.]\.$", run("--help").stdout, re.MULTILINE)


def test_every_command_on_a_trace_takes_the_selection() -> None:
    wanted = {option.name for option in options_of(selection_options(click.Command("x")))}
    wanted = wanted or {one.name for one in options_of(main.commands["passes"])} - {"output_format"}
    for name, command in main.commands.items():
        if any(one.name == "trace" for one in command.params) or name in {"ingest", "sql"}:
            assert wanted <= {one.name for one in options_of(command)}, name


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from trace_sql.cli import main\n"
        "for name in ['', *main.commands]:\n"
        "    assert CliRunner().invoke(main, [*name.split(), '--help']).exit_code == 0\n"
        "print([m for m in ('duckdb', '_duckdb', 'pyarrow', 'jinja2') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
