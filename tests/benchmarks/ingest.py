"""What reading a trace costs: by stage, beside the floor, plain Python and other tools."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trace_sql.output import Column, Table

from .machine import free_bytes
from .peers import peer_processes
from .process import REFUSED, BenchmarkError, Measured, Process, median, ratio, rounds
from .subjects import Subject

BASELINE = str(Path(__file__).with_name("baseline.py"))
FLOOR = str(Path(__file__).with_name("floor.py"))
STAGES = ("start", "read", "cut", "parse", "write")
LOOPS = "json.load and loops"
_LOOPS_MEMORY = 6
"""Bytes that json.load needs a byte of JSON."""
_SHAKY = 1.3


@dataclass
class Costs:
    """What was measured about one subject; `found` by name of a process."""

    subject: Subject
    ingest: list[Measured]
    events_bytes: int
    found: dict[str, list[Measured] | BenchmarkError]
    notes: list[str] = field(default_factory=list)

    def ratio(self, ours: str, name: str) -> tuple[float | None, float | None]:
        """Return what one process takes of another's wall and processor time, if both ran."""
        mine, other = self.found.get(ours), self.found.get(name)
        if isinstance(mine, list) and isinstance(other, list):
            return ratio(mine, other)
        return None, None


def measure(subject: Subject, folder: Path, quick: bool) -> Costs:
    """Run everything about a subject; slow peers once."""
    path = str(subject.path)
    store = folder / "store"
    out = folder / "out"
    environment = {"TRACE_SQL_STORE": str(store)}

    def fresh(name: str, *command: str) -> Process:
        clear = partial(shutil.rmtree, store, ignore_errors=True)
        return Process(name, ["-m", "trace_sql", *command], environment=environment, before=clear)

    ours = [stage_process(stage, path, out) for stage in STAGES]
    ours += [
        fresh("ingest", "ingest", path),
        fresh("passes", "passes", path, *subject.options),
        Process("floor", [FLOOR, path]),
    ]
    free = free_bytes()
    notes: list[str] = []
    others, absent = peer_processes(path, subject.raw_bytes, free)
    if _LOOPS_MEMORY * subject.raw_bytes < free:
        others.insert(0, Process(LOOPS, [BASELINE, path, subject.anchor]))
    else:
        notes.append(f"json.load: {subject.megabytes:.0f} MB would not fit")
    large = subject.megabytes > 100
    fast = [one for one in others if one.name.startswith(("json.load", "orjson"))]
    slow = [one for one in others if one not in fast]
    count = 1 if quick or subject.megabytes > 1000 else 3
    found = rounds([*ours, *([] if large else fast)], count)
    found |= rounds([*slow, *(fast if large else [])], 1)
    shutil.rmtree(out, ignore_errors=True)
    # The last one left its store.
    events = sum(one.stat().st_size for one in store.glob("*/traces/*/events.parquet"))
    ingest = found["ingest"]
    if isinstance(ingest, BenchmarkError):
        raise ingest
    passes = found["passes"]
    if not isinstance(passes, BenchmarkError) and passes[0].code in REFUSED:
        notes.append(f"{subject.name}: analysed and refused (exit {passes[0].code})")
    return Costs(subject, ingest, events, found, notes + absent)


def stage_process(stage: str, path: str, out: Path) -> Process:
    def clear() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    command = ["-m", "tests.benchmarks.stages", stage, path, str(out)]
    return Process(stage, command, before=clear)


_LABELS = {
    "start": "start: Python, engine",
    "read": "+ read, gunzip, hash",
    "cut": "+ cut",
    "parse": "+ parse, thrown away",
    "write": "+ write Parquet",
    "ingest": "INGEST, fresh store",
    "passes": "ingest, views, passes",
    "floor": "floor: nothing written",
}


def ingest_table(costs: Costs) -> Table:
    """Return one table: a row a process, with what an ingest takes of it."""
    subject = costs.subject
    rows: list[tuple[object, ...]] = []
    shaky: dict[str, float] = {}
    for name, runs in costs.found.items():
        if isinstance(runs, BenchmarkError):
            costs.notes.append(f"{name} failed ({runs})")
            continue
        shown = median(runs)
        shaky[name] = shown.spread
        rate = None if name == "start" else subject.megabytes / shown.seconds
        ours = name in STAGES or name == "ingest"
        ratios = (None, None) if ours else costs.ratio("ingest", name)
        rows.append((_LABELS.get(name, name), *cost(shown), rate, *ratios))
    if (worst := max(shaky.values())) > _SHAKY:
        costs.notes.append(
            f"{subject.name}: of one process the longest run took {worst:.1f} of the shortest"
        )
    columns = (
        Column("process", "Process, + : and all above"),
        Column("seconds", "Wall s", 2),
        Column("cpu_seconds", "CPU s", 2),
        Column("peak_mb", "Peak MB", 0),
        Column("rate", "MB/s", 0),
        Column("ratio", "Ingest / it", 2),
        Column("cpu_ratio", "in CPU", 2),
    )
    title = (
        f"{subject.name}: {subject.megabytes:.0f} MB of JSON,"
        f" {subject.file_bytes / 1e6:.1f} MB gzipped, {costs.events_bytes / 1e6:.1f} MB of Parquet"
    )
    return Table("ingest", title, columns, rows)


def size_table(measured: list[Costs]) -> Table:
    """Return how time, memory and ratios go with the size of a trace."""
    columns = (
        Column("trace", "Trace", wrap=True),
        Column("megabytes", "JSON MB", 0),
        Column("seconds", "Ingest", 2),
        Column("rate", "MB/s", 0),
        Column("peak_mb", "MB", 0),
        Column("floor", "/floor", 2),
        Column("floor_cpu", "in CPU", 2),
        Column("orjson", "/orjson", 2),
        Column("loops", "/loops", 2),
        Column("first", "1st/loops", 2),
        Column("parquet", "Parquet/gz", 2),
    )
    rows = [
        (
            costs.subject.name,
            costs.subject.megabytes,
            median(costs.ingest).seconds,
            costs.subject.megabytes / median(costs.ingest).seconds,
            median(costs.ingest).peak_mb,
            *costs.ratio("ingest", "floor"),
            costs.ratio("ingest", "orjson.loads, nothing else")[0],
            costs.ratio("ingest", LOOPS)[0],
            costs.ratio("passes", LOOPS)[0],
            costs.events_bytes / costs.subject.file_bytes,
        )
        for costs in measured
    ]
    title = "Ingest by size, as ratios of wall time; 1st: ingest, views and the passes report"
    return Table("sizes", title, columns, rows)


def layout_table(subjects: list[Subject], folder: Path, quick: bool) -> tuple[Table, list[str]]:
    """Compare an ingest of the same events in other layouts with the first one's."""
    store = folder / "layouts"
    environment = {"TRACE_SQL_STORE": str(store)}
    clear: Callable[[], None] = partial(shutil.rmtree, store, ignore_errors=True)
    processes = [
        Process(
            one.path.name,
            ["-m", "trace_sql", "ingest", str(one.path)],
            environment=environment,
            before=clear,
        )
        for one in subjects
    ]
    found = rounds(processes, 1 if quick else 3)
    first = found[subjects[0].path.name]
    if isinstance(first, BenchmarkError):
        raise first
    notes: list[str] = []

    def rows() -> Iterator[tuple[object, ...]]:
        for one in subjects:
            runs = found[one.path.name]
            if isinstance(runs, BenchmarkError):
                notes.append(f"{one.path.name}: {runs}")
                continue
            shown = median(runs)
            times, in_cpu = ratio(runs, first)
            kept = "kept" if times <= 2 else "MISSED"
            target = "" if runs is first else f"<= 2: {kept}"
            yield one.path.name, one.megabytes, *cost(shown), times, in_cpu, target

    columns = (
        Column("file", "File"),
        Column("megabytes", "JSON MB", 0),
        Column("seconds", "Wall s", 2),
        Column("cpu_seconds", "CPU s", 2),
        Column("peak_mb", "Peak MB", 0),
        Column("ratio", "Of Kineto's", 2),
        Column("cpu_ratio", "in CPU", 2),
        Column("target", "Target"),
    )
    title = "The same events in other layouts, ingest into a fresh store"
    return Table("layouts", title, columns, list(rows())), notes


def cost(measured: Measured) -> tuple[float, float, float]:
    return measured.seconds, measured.cpu_seconds, measured.peak_mb
