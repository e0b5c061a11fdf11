"""What `make bench` measures on and with: traces of any layout, and the floor."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from benchmarks import floor, traces
from benchmarks.ingest import STAGES, stage_process
from benchmarks.layouts import LAYOUTS
from benchmarks.process import ROOT, BenchmarkError, Measured, Process, ratio, run

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


def written(folder: Path, layout: str, megabytes: float = 1, suffix: str = ".json") -> Path:
    path = folder / f"{layout}{suffix}"
    traces.write(traces.made(), path, megabytes, layout)
    return path


def events_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    document = json.loads(text, parse_float=Decimal)
    events: list[dict[str, Any]] = document if type(document) is list else document["traceEvents"]
    return events


def test_layouts_say_the_same(tmp_path: Path) -> None:
    # One stretch each: after so many bytes the number of copies differs.
    found = {layout: events_of(written(tmp_path, layout)) for layout in LAYOUTS}
    assert len(found["kineto"]) > 5000
    assert all(events == found["kineto"] for events in found.values())
    assert b"\n" not in (tmp_path / "compact.json").read_bytes()


def test_a_copy_is_later_and_has_ids_of_its_own(tmp_path: Path) -> None:
    one, two = traces.made(), events_of(written(tmp_path, "kineto", 5))
    count = len(one.events)
    first, second = two[:count], two[count : 2 * count]
    assert len(two) >= 2 * count + len(one.rows)
    assert max(e["ts"] for e in first) < min(e["ts"] for e in second)
    for before, after, made in zip(first, second, one.events, strict=True):
        assert after["name"] == before["name"] == made["name"]
        assert after.get("dur") == before.get("dur")
        assert before["ts"] * 1000 == made["ts"]
    for name in ("correlation", "External id", "Python id"):
        ids = [{e["args"].get(name) for e in part if "args" in e} for part in (first, second)]
        assert ids[0] & ids[1] <= {None, 0}
        assert len(ids[0]) == len(ids[1]) > 1


def test_the_kineto_layout_is_the_profilers() -> None:
    path = TRACES / "train_nccl.json.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in shared/traces/")
    text = gzip.decompress(path.read_bytes()).decode()
    real = re.split(r",\n(?=  \{\n)", text.partition('"traceEvents": [\n')[2].partition("\n  ]")[0])
    events = events_of(path)
    assert len(real) == len(events)
    # Numbers aside: how many digits a float has is the logger's business.
    wrong = [
        event
        for event, theirs in zip(events, real, strict=True)
        if NUMBER.sub("0", LAYOUTS["kineto"].event(event)) != NUMBER.sub("0", theirs)
    ]
    # The row of spans breaks its line elsewhere.
    assert [event["pid"] for event in wrong] == ["Spans"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_floor_reads_all_events(tmp_path: Path, layout: str) -> None:
    path = written(tmp_path, layout, 3)
    assert floor.main(str(path)) == len(events_of(path))


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_runs(tmp_path: Path, stage: str) -> None:
    path = written(tmp_path, "kineto", suffix=".json.gz")
    measured = run(stage_process(stage, str(path), tmp_path / "out"))
    assert measured.seconds > 0 < measured.peak_mb
    assert (tmp_path / "out" / "events.parquet").exists() == (stage == "write")


def test_memory_is_that_of_the_whole_tree() -> None:
    hold = "b = bytearray(60_000_000); import time; time.sleep(0.4)"
    both = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}"
    # From a small process: the peak of a child starts at what its parent has.
    code = "import sys; from tests.benchmarks.process import Process, run;"
    code += "print(run(Process('two', ['-c', sys.argv[1]])).peak_mb)"
    command = [sys.executable, "-c", code, f"{both}; p.wait()"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    least = 120 if sys.platform == "linux" else 60
    assert least < float(done.stdout) < 1.7 * least


def test_a_process_that_fails_or_hangs_says_so() -> None:
    with pytest.raises(BenchmarkError, match="exit 1: ValueError: no"):
        run(Process("bad", ["-c", "raise ValueError('no')"]))
    with pytest.raises(BenchmarkError, match="too slow"):
        run(Process("slow", ["-c", "import time; time.sleep(60)"], limit_s=0.2))


def test_ratios_are_taken_round_by_round() -> None:
    ours = [Measured(one, one, 1, 0) for one in (1.0, 2.0, 8.0)]
    other = [Measured(one, 2 * one, 1, 0) for one in (2.0, 4.0, 4.0)]
    assert ratio(ours, other) == (0.5, 0.25)
    assert ratio(ours, other[:1]) == (1.0, 0.5)


def test_the_plain_reading_prints_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, "kineto")
    script = Path(__file__).parent / "benchmarks" / "baseline.py"
    done = subprocess.run(
        [sys.executable, str(script), str(path), "FusedAddRMSNorm"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) > 4 * 64
