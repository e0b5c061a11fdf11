"""`python -m tests.benchmarks`: what an ingest and its answers cost, beside what others need."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from trace_sql.output import Table, render

from .growth import growth_tables
from .ingest import Costs, ingest_table, layout_table, measure, size_table
from .layouts import LAYOUTS
from .machine import Machine, described
from .questions import question_table
from .subjects import Subject, made_subject, real_subjects, repeated_subject

_LAYOUT_MB = 30


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--megabytes", type=float, nargs="+", default=[15, 60], help="sizes of made traces"
    )
    parser.add_argument("--full", action="store_true", help="512 MB and 2 GB too, and 100 traces")
    parser.add_argument("--quick", action="store_true", help="one run of each, 1 and 4 traces")
    options = parser.parse_args()
    sizes = sorted({*options.megabytes, *((512, 2000) if options.full else ())})
    machine = Machine()
    machine.look()
    print(f"{described()}\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="trace-sql-bench.") as name:
        folder = Path(name)
        notes = by_size(folder, sizes, options.quick, machine)
        machine.look()
        layouts = [made_subject(folder, _LAYOUT_MB, layout) for layout in LAYOUTS]
        layouts.append(made_subject(folder, _LAYOUT_MB, suffix=".json"))
        table, more = layout_table(layouts, folder, options.quick)
        show(table)
        notes += more
        machine.look()
        table, more = question_table(made_subject(folder, sizes[-1]), folder, options.quick)
        show(table)
        notes += more
    machine.look()
    # Last: this process grows, and a child's peak counts from what its parent had.
    counts = (1, 4) if options.quick else (1, 10, 100) if options.full else (1, 10)
    for table in growth_tables(counts):
        show(table)
    for note in dict.fromkeys([*machine.notes(), *notes]):
        print(note)


def by_size(folder: Path, sizes: list[float], quick: bool, machine: Machine) -> list[str]:
    """Print what every subject costs, one table each and one of all; return notes."""
    subjects, notes = real_subjects()
    measured: list[Costs] = []

    def one(subject: Subject) -> None:
        machine.look()
        costs = measure(subject, folder, quick)
        show(ingest_table(costs))
        notes.extend(costs.notes)
        measured.append(costs)

    for subject in subjects:
        one(subject)
    for megabytes in sizes:
        subject = made_subject(folder, megabytes)
        one(subject)
        repeated = repeated_subject(folder, megabytes) if megabytes > 15 else None
        if repeated is not None:
            one(repeated)
            repeated.path.unlink()
    show(size_table(measured))
    return notes


def show(table: Table) -> None:
    print(render([table], "table"), flush=True)


if __name__ == "__main__":
    main()
