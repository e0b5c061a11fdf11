"""What an answer costs once a trace is in the store."""

from __future__ import annotations

from pathlib import Path

from trace_sql.output import Column, Table

from .ingest import cost
from .process import BenchmarkError, Process, median, rounds
from .subjects import Subject

_WARM_S = 0.5
_HELP_S = 0.15
_SQL = "select category, count(*), sum(dur_ns) from kernels group by all"
_COMMANDS = (
    ("passes",),
    ("layers",),
    ("kernels", "--layer", "3"),
    ("categories",),
    ("anchors",),
    ("perfetto",),
    ("report",),
)


def question_table(subject: Subject, folder: Path, quick: bool) -> tuple[Table, list[str]]:
    """Ask every report about a trace: first in a store that holds its events, then again."""
    environment = {"TRACE_SQL_STORE": str(folder / "questions")}

    def process(*words: str) -> Process:
        command, *rest = words
        told = ["-m", "trace_sql", command, str(subject.path), *subject.options, *rest]
        return Process(" ".join(words), told, environment=environment)

    ingest = Process(
        "ingest", ["-m", "trace_sql", "ingest", str(subject.path)], environment=environment
    )
    rounds([ingest], 1)
    sql = ["-m", "trace_sql", "sql", _SQL]
    processes = [process(*words) for words in _COMMANDS]
    processes.append(Process("sql: kernels by category", sql, environment=environment))
    firsts = rounds(processes, 1)
    again = rounds(processes, 1 if quick else 5)
    shown = rounds([Process("--help", ["-m", "trace_sql", "--help"])], 1 if quick else 5)
    rows: list[tuple[object, ...]] = []
    notes: list[str] = []
    for name, runs in (again | shown).items():
        if isinstance(runs, BenchmarkError):
            notes.append(f"{subject.name}: {name} failed ({runs})")
            continue
        first = firsts.get(name)
        target = _HELP_S if name == "--help" else _WARM_S
        measured = median(runs)
        kept = "kept" if measured.seconds < target else "MISSED"
        before = first[0].seconds if isinstance(first, list) else None
        rows.append((name, before, *cost(measured), f"< {target:g} s: {kept}"))
    columns = (
        Column("command", "Command"),
        Column("first", "First s", 2),
        Column("seconds", "Again s", 2),
        Column("cpu_seconds", "CPU s", 2),
        Column("peak_mb", "Peak MB", 0),
        Column("target", "Target"),
    )
    title = f"{subject.name}, {subject.megabytes:.0f} MB of JSON: reports in this order, and again"
    return Table("questions", title, columns, rows), notes
