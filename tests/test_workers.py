"""Many files at once: several processes give what one gives, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT
from folders import folder, trace

from trace_sql import workers
from trace_sql.inputs import expand
from trace_sql.settings import Settings
from trace_sql.store import Store
from trace_sql.workers import Outcome, ingest_all


def outcomes(
    root: Path, processes: int | None, calls: list[tuple[int, int, int, int]] | None = None
) -> list[Outcome]:
    def progress(*numbers: int) -> None:
        if calls is not None:
            calls.append((numbers[0], numbers[1], numbers[2], numbers[3]))

    found = expand([root / "in"])
    store = Store(root / f"store{processes}")
    return ingest_all(store, found.inputs, Settings(run="r"), progress, processes)


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    folder(
        tmp_path / "in",
        {
            **{f"{number}.json": trace(number + 1) for number in range(5)},
            "bad.json": b"hello",
            "copy.json": trace(1),
            "none.json": b"{}",
        },
    )
    calls: list[tuple[int, int, int, int]] = []
    one, two = outcomes(tmp_path, 1), outcomes(tmp_path, 2, calls)
    ids = [[done.trace_id for done in outcome.ingested] for outcome in two]
    assert ids == [[done.trace_id for done in outcome.ingested] for outcome in one]
    assert [type(outcome.error) for outcome in two] == [type(outcome.error) for outcome in one]
    assert [str(outcome.error) for outcome in two] == [str(outcome.error) for outcome in one]
    assert sum(outcome.error is not None for outcome in two) == 2
    total = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert calls[-1] == (8, 8, total, total)
    assert [call[2] for call in calls] == sorted(call[2] for call in calls)
    for entry in Store(tmp_path / "store2").traces():
        assert entry.settings.run == "r"


def test_a_process_that_is_killed_costs_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "in", {f"{number}.json": trace(number + 1) for number in range(3)})
    start: Callable[..., Any] = workers._start
    killed: list[Any] = []

    def doomed(*arguments: Any) -> Any:
        worker = start(*arguments)
        if not killed:
            killed.append(worker)
            worker.process.kill()
            worker.process.join()
        return worker

    monkeypatch.setattr(workers, "_start", doomed)
    found = outcomes(tmp_path, 2)
    errors = [str(outcome.error) for outcome in found if outcome.error]
    assert len(errors) == 1 and "ended (signal 9)" in errors[0]
    assert sum(len(outcome.ingested) for outcome in found) == 2


def test_small_folders_need_no_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "in", {"a.json": trace(), "b.json": trace(2)})
    monkeypatch.setattr(workers, "_cores", lambda: 64)
    monkeypatch.setattr(workers, "_start", None)
    assert [len(outcome.ingested) for outcome in outcomes(tmp_path, None)] == [1, 1]
    inputs = expand([tmp_path / "in"]).inputs
    monkeypatch.setattr(workers, "_WORTH_BYTES", 10)
    assert workers._useful(Store(tmp_path), inputs) == 2
    assert workers._useful(Store(tmp_path, memory_limit=1 << 28), inputs) == 1
    monkeypatch.setattr(workers, "_cores", lambda: 2)
    assert workers._useful(Store(tmp_path), inputs) == 1


INTERRUPTED = """
import sys
from pathlib import Path
from trace_sql.inputs import expand
from trace_sql.settings import Settings
from trace_sql.store import Store
from trace_sql.workers import ingest_all

if __name__ == "__main__":
    root = Path(sys.argv[1])
    inputs = expand([root / "in"]).inputs
    try:
        ingest_all(Store(root / "store"), inputs, Settings(), lambda *_: print(flush=True), 2)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interrupt_leaves_no_process(tmp_path: Path) -> None:
    folder(tmp_path / "in", {f"{number}.json": trace(20_000 + number) for number in range(6)})
    (tmp_path / "script.py").write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    # As a terminal does, to all of them.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out.split() == ["interrupted"]
    assert err == ""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")
