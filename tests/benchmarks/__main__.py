"""`python -m tests.benchmarks`: what a first and a second answer cost, beside a plain reading."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

from trace_sql.output import render

from .growth import growth_tables
from .speed import made_subject, real_subjects, speed_table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=60, help="size of the made trace")
    parser.add_argument("--quick", action="store_true", help="one run of each, 1 and 4 traces")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}\n")
    subjects, notes = real_subjects()
    with tempfile.TemporaryDirectory(prefix="trace-sql-bench.") as name:
        subjects.append(made_subject(Path(name), options.megabytes))
        table, more = speed_table(subjects, options.quick)
    print(render([table], "table"))
    # Last: this process grows, and a child's peak counts from what its parent had.
    print(render(growth_tables((1, 4) if options.quick else (1, 4, 16)), "table"))
    for note in notes + more:
        print(note)


if __name__ == "__main__":
    main()
