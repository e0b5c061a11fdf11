"""Reports on looped models: loops of a pass, loops compared, depths, against plain readings."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from fixtures.__main__ import DEMO
from trace_sql.cli import main
from trace_sql.views import load_views

TABLES = {
    "passes": "trace_id varchar, pass_no bigint, status varchar, kind varchar, phase varchar,"
    " depth bigint, wall_ns bigint",
    "layers": "trace_id varchar, pass_no bigint, loop_no bigint, layer_no bigint,"
    " complete boolean, wall_ns bigint",
    "placed_activities": "trace_id varchar, pass_no bigint, loop_no bigint, layer_no bigint,"
    " region varchar, start_ns bigint, end_ns bigint, dur_ns bigint, gpu_index bigint",
    "trace_settings": "trace_id varchar, depth bigint",
}
VIEWS = (
    "core_layers",
    "loops",
    "loop_layers",
    "loop_medians",
    "exit_depths",
    "exit_savings",
    "loop_table",
    "loop_comparison",
)


@dataclass
class Work:
    """Device work of one loop, or of a layer in it: (start, end, outside a layer)."""

    spans: list[tuple[int, int, bool]] = field(default_factory=list)
    layers: set[int] = field(default_factory=set)

    @property
    def wall(self) -> int:
        return max(end for _, end, _ in self.spans) - min(start for start, _, _ in self.spans)

    @property
    def busy(self) -> int:
        moments = {moment for start, end, _ in self.spans for moment in range(start, end)}
        return len(moments)


@dataclass
class Trace:
    """Passes of a looped model by hand, and what was put into each loop."""

    connection: duckdb.DuckDBPyConnection
    trace_id: str
    work: dict[tuple[int, int], Work] = field(default_factory=lambda: defaultdict(Work))
    visits: dict[tuple[int, int, int], int] = field(default_factory=dict)
    walls: dict[int, int] = field(default_factory=dict)
    depths: list[tuple[str, int]] = field(default_factory=list)
    clock: int = 0
    index: int = 0

    def insert(self, table: str, *values: Any) -> None:
        marks = ", ".join("?" * (len(values) + 1))
        self.connection.execute(f"insert into {table} values ({marks})", [self.trace_id, *values])

    def activity(
        self, pass_no: int, loop: int | None, layer: int | None, region: str, dur: int, gap: int = 0
    ) -> tuple[int, int]:
        """Add an activity; a negative gap lets it overlap the one before."""
        start = max(self.clock + gap, 0)
        end = start + dur
        self.clock = max(self.clock, end)
        self.insert("placed_activities", pass_no, loop, layer, region, start, end, dur, self.index)
        self.index += 1
        return start, end

    def add(
        self,
        random: Random,
        depth: int,
        phase: str | None = "decode",
        *,
        core: range = range(1, 4),
        last: int = 4,
        slow: dict[int, float] | None = None,
        status: str = "complete",
    ) -> None:
        """Run layer 0, then `core` in `depth` loops, each with adapter and norm, then the rest."""
        pass_no = len(self.walls)
        begin = self.clock
        self.activity(pass_no, None, None, "prologue", 5)
        for layer in range(core.start):
            self._layer(random, pass_no, 0, layer, 1.0, None)
        for loop in range(depth):
            work = self.work[pass_no, loop]
            span = self.activity(pass_no, loop, None, "prologue", random.randint(1, 3))
            work.spans.append((*span, True))
            for layer in core:
                self._layer(random, pass_no, loop, layer, (slow or {}).get(loop, 1.0), work)
            span = self.activity(pass_no, loop, None, "epilogue", 2)
            work.spans.append((*span, True))
        for layer in range(core.stop, last + 1):
            self._layer(random, pass_no, 0, layer, 1.0, None)
        # The norm behind the last layer, which is visited once, is of no loop.
        self.activity(pass_no, 0, None, "epilogue", 7)
        self.activity(pass_no, None, None, "epilogue", 9)
        self.walls[pass_no] = self.clock - begin
        self.insert("passes", pass_no, status, "target", phase, depth, self.clock - begin)
        if status == "complete":
            self.depths.append((phase or "unknown", depth))
        self.clock += 50

    def _layer(
        self, random: Random, pass_no: int, loop: int, layer: int, slow: float, work: Work | None
    ) -> None:
        first = self.clock
        for _ in range(2):
            dur = int(random.randint(80, 90) * slow)
            span = self.activity(pass_no, loop, layer, "layer", dur, random.choice((0, 4, -6)))
            if work is not None:
                work.spans.append((*span, False))
                work.layers.add(layer)
            first = min(first, span[0])
        wall = self.clock - first
        self.insert("layers", pass_no, loop, layer, True, wall)
        if work is not None:
            self.visits[pass_no, loop, layer] = wall

    def rows(self, sql: str) -> list[dict[str, Any]]:
        cursor = self.connection.execute(f"{sql} where trace_id = '{self.trace_id}'")
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with contextlib.closing(duckdb.connect()) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"create table {name} ({columns})")
        for name in VIEWS:
            connection.execute(f"create view {name} as {load_views()[name].text}")
        yield connection


def lower(values: list[int], part: float = 0.5) -> int:
    """Return the value that at least `part` of the values do not exceed, the least such."""
    ordered = sorted(values)
    return next(
        value
        for value in ordered
        if sum(other <= value for other in ordered) >= part * len(ordered)
    )


@pytest.mark.parametrize("seed", range(4))
def test_loops_against_a_plain_reading(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    random = Random(seed)
    trace, other = Trace(connection, "a"), Trace(connection, "b")
    trace.add(random, 4, "prefill")
    for _ in range(random.randint(2, 7)):
        trace.add(random, random.randint(1, 4), slow={2: 1.3})
        other.add(random, 2)
    trace.add(random, 3, status="cut_end")
    core = {(row["layer_no"], row["stack_no"]) for row in trace.rows("from core_layers")}
    assert core == {(1, 0), (2, 0), (3, 0)}

    loops = {(row["pass_no"], row["loop_no"]): row for row in trace.rows("from loops")}
    assert set(loops) == set(trace.work)
    for place, work in trace.work.items():
        row = loops[place]
        assert row["n_layers"] == len(work.layers) == 3
        assert row["wall_ns"] == work.wall
        assert row["busy_ns"] == work.busy
        assert row["sum_dur_ns"] == sum(end - start for start, end, _ in work.spans)
        assert row["between_ns"] == sum(end - start for start, end, out in work.spans if out)
        assert row["n_activities"] == len(work.spans)
        assert row["share_pct"] == pytest.approx(100 * work.wall / trace.walls[place[0]])
        assert row["complete"] == (place[0] < len(trace.walls) - 1)

    whole = {place: work.wall for place, work in trace.work.items() if loops[place]["complete"]}
    phases = {row["pass_no"]: row["phase"] for row in trace.rows("from passes")}
    medians = {(row["phase"], row["loop_no"]): row for row in trace.rows("from loop_medians")}
    series: dict[tuple[str, int], list[int]] = defaultdict(list)
    for (pass_no, loop), wall in whole.items():
        series[phases[pass_no], loop].append(wall)
    assert set(medians) == set(series)
    for (phase, loop), walls in series.items():
        row = medians[phase, loop]
        first = lower(series[phase, 0])
        usual = lower([lower(walls) for (of, _), walls in series.items() if of == phase])
        assert row["n_passes"] == len(walls)
        assert row["median_wall_ns"] == lower(walls)
        assert (row["min_wall_ns"], row["max_wall_ns"]) == (min(walls), max(walls))
        assert row["ratio"] == pytest.approx(lower(walls) / first)
        assert row["differs"] == (abs(lower(walls) - usual) > 0.05 * usual)

    layers = {
        (row["phase"], row["layer_no"], row["loop_no"]): row
        for row in trace.rows("from loop_layers")
    }
    by_layer: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for (pass_no, loop, layer), wall in trace.visits.items():
        if loops[pass_no, loop]["complete"]:
            by_layer[phases[pass_no], layer, loop].append(wall)
    assert set(layers) == set(by_layer)
    for (phase, layer, loop), walls in by_layer.items():
        first = lower(by_layer[phase, layer, 0])
        assert layers[phase, layer, loop]["median_wall_ns"] == lower(walls)
        change = 100 * (lower(walls) - first) / first
        assert layers[phase, layer, loop]["change_pct"] == pytest.approx(change)
    for (phase, loop), row in medians.items():
        changes = {
            layer: layers[of, layer, at]["change_pct"]
            for of, layer, at in layers
            if (of, at) == (phase, loop)
        }
        assert row["most_layer_pct"] == max(changes.values())
        assert changes[row["most_layer_no"]] == max(changes.values())
        assert row["least_layer_pct"] == min(changes.values())
        assert changes[row["least_layer_no"]] == min(changes.values())


@pytest.mark.parametrize("full", [4, None, 2])
def test_depths_against_a_plain_reading(
    connection: duckdb.DuckDBPyConnection, full: int | None
) -> None:
    random = Random(7)
    trace, other = Trace(connection, "a"), Trace(connection, "b")
    trace.insert("trace_settings", full)
    other.insert("trace_settings", 8)
    for depth in (4, 4):
        trace.add(random, depth, "prefill")
    for depth in (2, 3, 2, 4, 1, 2, 4, 2, 2, 2):
        trace.add(random, depth)
        other.add(random, 3, None)
    trace.add(random, 1, status="cut_end")
    trace.add(random, 1, status="refused")
    found = {
        (row["phase"], row["depth"]): row["n_passes"] for row in trace.rows("from exit_depths")
    }
    assert found == {key: trace.depths.count(key) for key in trace.depths}
    shares = [row["share_pct"] for row in trace.rows("from exit_depths")]
    assert sum(shares) == pytest.approx(200), "100 % of each of two phases"
    savings = {row["phase"]: row for row in trace.rows("from exit_savings")}
    for phase, row in savings.items():
        depths = [depth for of, depth in trace.depths if of == phase]
        assert (row["n_passes"], row["n_runs"]) == (len(depths), sum(depths))
        assert row["avg_depth"] == pytest.approx(sum(depths) / len(depths))
        assert (row["min_depth"], row["max_depth"]) == (min(depths), max(depths))
        assert (row["p50_depth"], row["p90_depth"]) == (lower(depths), lower(depths, 0.9))
        assert row["full_depth"] == full
        assert row["n_full"] == (None if full is None else depths.count(full))
        if full is None or max(depths) > full:
            assert row["saving_pct"] is None, "not known, or passes deeper than full"
        else:
            saved = 1 - sum(depths) / (full * len(depths))
            assert row["saving_pct"] == pytest.approx(100 * saved)
    assert set(savings) == {"prefill", "decode"}
    (unknown,) = other.rows("from exit_savings")
    assert (unknown["phase"], unknown["saving_pct"]) == ("unknown", 62.5)


def test_a_slow_loop_is_named_with_its_slowest_layer(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    trace = Trace(connection, "a")
    random = Random(1)
    for _ in range(5):
        trace.add(random, 4, slow={2: 1.5})
    rows = {row["loop_no"]: row for row in trace.rows("from loop_comparison")}
    assert [loop for loop, row in rows.items() if row["differs"]] == [2]
    assert rows[2]["notes"].startswith("differs: +") and "; layer " in rows[2]["notes"]
    assert rows[1]["notes"] is None and rows[0]["ratio"] == 1


def test_two_cycles_inside_each_other_are_two_stacks(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    trace = Trace(connection, "a")
    trace.insert("passes", 0, "complete", "target", "decode", 2, 100)
    for cycle in range(2):
        for low in range(3):
            for layer in (0, 1):
                trace.activity(0, 3 * cycle + low, layer, "layer", 10)
                trace.insert("layers", 0, 3 * cycle + low, layer, True, 10)
        for layer in (2, 3):
            trace.activity(0, cycle, layer, "layer", 20)
            trace.insert("layers", 0, cycle, layer, True, 20)
        trace.activity(0, cycle, None, "epilogue", 4)
    stacks = [
        (row["layer_no"], row["n_visits"], row["stack_no"])
        for row in trace.rows("from core_layers")
    ]
    assert sorted(stacks) == [(0, 6, 0), (1, 6, 0), (2, 2, 1), (3, 2, 1)]
    seen = sorted(
        (row["stack_no"], row["loop_no"], row["wall_ns"], row["between_ns"])
        for row in trace.rows("from loops")
    )
    assert seen == [*((0, loop, 20, 0) for loop in range(6)), (1, 0, 44, 4), (1, 1, 44, 4)]
    (depths,) = trace.rows("from exit_depths")
    assert (depths["depth"], depths["n_passes"]) == (2, 1)


def test_a_model_without_loops_has_none(connection: duckdb.DuckDBPyConnection) -> None:
    trace = Trace(connection, "a")
    for _ in range(3):
        trace.add(Random(1), 1)
    for name in VIEWS:
        assert trace.rows(f"from {name}") == [], name


def test_the_command_says_in_one_line_that_there_are_no_loops(tmp_path: Path) -> None:
    trace = str(DEMO / "gpt-oss-TP-0.trace.json.gz")
    config = str(DEMO / "config.json")
    result = CliRunner().invoke(
        main, ["--store", str(tmp_path), "loops", trace, "--config", config]
    )
    assert (result.exit_code, result.stdout) == (0, "")
    (line,) = [line for line in result.stderr.splitlines() if "loops" in line]
    assert line == "no loops: each complete pass visits each of its layers once"
