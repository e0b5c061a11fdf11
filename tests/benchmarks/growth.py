"""Growth: time must follow the number of traces, and the number of passes in one trace."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from fixtures import Kind, Pass, Scenario, kind, make, write
from trace_sql.database import Database
from trace_sql.output import Column, Table
from trace_sql.store import Settings, Store

QUESTION = "select trace_id, count(*), sum(busy_ns) from layers group by all"
LAYERS = 36


@dataclass(frozen=True)
class Times:
    """Seconds of an ingest, of the first two answers over all traces, and of one over one."""

    ingest: float
    first: float
    again: float
    one: float
    events: int


def growth_tables(counts: tuple[int, ...]) -> list[Table]:
    """Analyse so many traces of four passes, then one trace with so many times four passes."""
    model = kind("sglang_qwen3_amd")
    with tempfile.TemporaryDirectory(prefix="trace-sql-bench.") as name:
        folder = Path(name)
        # The first analysis of a process loads the engine and the templates.
        times(folder / "first", [written(folder, model, 0, 4)])
        traces = [written(folder, model, seed, 4) for seed in range(max(counts))]
        many = {count: times(folder / f"many{count}", traces[:count]) for count in counts}
        long = {
            count: times(folder / f"long{count}", [written(folder, model, 99, 4 * count)])
            for count in counts
        }
    return [
        table("traces", "Analysis of made traces of four passes each", "Traces", many),
        table("passes", "Analysis of one made trace, longer and longer", "x 4 passes", long),
    ]


def written(folder: Path, model: Kind, seed: int, passes: int) -> tuple[Path, int]:
    """Write a trace; return where, and how many events it has."""
    config = model.model_config(layers=LAYERS)
    scenario = replace(Scenario(launch="graph", passes=(Pass(),) * passes), seed=seed)
    trace = make(config, model, scenario)
    return write(trace, folder / f"{seed}.{passes}.json.gz", truth=False), len(trace.events)


def times(folder: Path, traces: list[tuple[Path, int]]) -> Times:
    store = Store(folder)
    settings = Settings(num_layers=LAYERS, profile="qwen_dense")
    begin = time.perf_counter()
    chosen = {store.ingest(path, settings).trace_id: settings for path, _ in traces}
    ingest = time.perf_counter() - begin
    first, again = asked(store, chosen), asked(store, chosen)
    one = asked(store, dict([next(iter(chosen.items()))]))
    return Times(ingest, first, again, one, sum(events for _, events in traces))


def asked(store: Store, chosen: dict[str, Settings]) -> float:
    begin = time.perf_counter()
    with Database(store, chosen) as database:
        rows = database.query(QUESTION).rows
    if len(rows) != len(chosen):
        raise RuntimeError(f"{len(rows)} of {len(chosen)} traces have layers")
    return time.perf_counter() - begin


def table(key: str, title: str, heading: str, measured: dict[int, Times]) -> Table:
    smallest = min(measured)
    base = measured[smallest]
    columns = (
        Column("count", heading),
        Column("events", "Events"),
        Column("ingest", "Ingest s", 2),
        Column("ingest_ratio", "Of linear", 2),
        Column("first", "First answer s", 2),
        Column("ratio", "Of linear", 2),
        Column("again", "Again s", 3),
        Column("one", "One trace s", 3),
    )
    rows = [
        (
            count,
            found.events,
            found.ingest,
            found.ingest / count * smallest / base.ingest,
            found.first,
            found.first / count * smallest / base.first,
            found.again,
            found.one,
        )
        for count, found in measured.items()
    ]
    return Table(key, f"{title} (linear: at most 1)", columns, rows)
