"""What tests of the command line share: how it is run, and what every answer must hold."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from trace_sql.cli import main
from trace_sql.errors import ExitCode
from trace_sql.safe_text import odd_characters

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "fixtures" / "demo"
TRACE = DEMO / "gpt-oss-TP-0.trace.json.gz"
CONFIG = DEMO / "config.json"
Run = Callable[..., Result]


def command(store: Path, *words: object) -> Result:
    """Run a command in this process; what is no exit is raised."""
    result = CliRunner().invoke(main, ["--store", str(store), *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(result: Result) -> Any:
    assert result.exit_code == ExitCode.OK, result.stderr
    return json.loads(result.stdout)


def refused(result: Result, code: ExitCode, *parts: str) -> None:
    """One line on stderr, nothing on stdout, the documented exit code."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"trace-sql: error: [^\n]+\n", result.stderr), result.stderr
    for part in parts:
        assert part in result.stderr


def unsafe(text: str) -> set[str]:
    """Return the characters that a terminal could obey or hide; line breaks are ours."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    odd = {c for c in set(text) if unicodedata.category(c) in kinds}
    return (odd | odd_characters(text)) - {"\n"}


def check_markdown(text: str) -> None:
    """Rows of a table have equally many cells, and no name is HTML, code or a link."""
    width = 0
    for line in text.splitlines():
        assert not re.search(r"(?<!\\)(?:\\\\)*[<`]", line), line
        assert not re.search(r"(?<!\\)(?:\\\\)*\]\(|\w://|www\.\w", line), line
        bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        assert bars == width or width == 0 or bars == 0, f"a broken row: {line}"
        width = bars
