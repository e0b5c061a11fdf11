"""Ingests that are killed at any step, or run side by side: a store shows whole traces or none."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork there")

# A process that forks: children need no start of their own, and share no thread with it.
DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from trace_sql import engine, flatten, store
from trace_sql.store import Store

folder, *paths = map(Path, sys.argv[1:-1])
task = json.loads(sys.argv[-1])
steps = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}

def in_child(work):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    return child, read

def answer(started):
    child, read = started
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None

def ingest(path, last=None):
    done = 0
    def step(name, args):
        nonlocal done
        if name in steps and (name != "open" or str(folder) in str(args[0])):
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
    sys.addaudithook(step)
    result = Store(folder).ingest(path)
    return [result.trace_id, result.fresh, done]

def seen():
    rows = []
    run = engine.connect().execute
    for entry in Store(folder).traces():
        assert Store(folder).settings(entry.trace_id).name
        sql = "select count(*), count(distinct name) from read_parquet(?)"
        facts = run("select n_events from read_parquet(?)", [str(entry.facts_path)])
        rows.append([*facts.fetchone(), *run(sql, [str(entry.events_path)]).fetchone()])
    return rows

def leftovers():
    return sorted(str(one) for one in folder.glob("v*/tmp/*"))
"""
STEPS = """
whole = answer(in_child(lambda: ingest(paths[0])))
found = [answer(in_child(seen))]
os.rename(folder, str(folder) + ".whole")
for last in range(whole[2]):
    assert answer(in_child(lambda: ingest(paths[0], last))) is None, "it was killed"
    found.append(answer(in_child(seen)))
    if found[-1]:
        os.rename(folder, f"{folder}.{last}")
again = answer(in_child(lambda: ingest(paths[0])))
print(json.dumps([whole[2], found, again, answer(in_child(seen)), leftovers()]))
"""
DELAYS = """
found = []
for delay in task:
    started = in_child(lambda: ingest(paths[0]))
    time.sleep(delay)
    os.kill(started[0], signal.SIGKILL)
    killed = answer(started) is None
    found.append([killed, answer(in_child(seen))])
again = answer(in_child(lambda: ingest(paths[0])))
print(json.dumps([found, again, answer(in_child(seen)), leftovers()]))
"""
AT_ONCE = """
started = [in_child(lambda: ingest(paths[number])) for number in task]
print(json.dumps([list(map(answer, started)), answer(in_child(seen)), leftovers()]))
"""


def write_trace(path: Path, name: str, events: int = 3000) -> Path:
    event = {"ph": "X", "cat": "kernel", "name": name, "ts": 1, "dur": 2, "args": {"device": 0}}
    path.write_text(json.dumps({"traceEvents": [event] * events}))
    return path


def drive(script: str, folder: Path, paths: list[Path], task: list[float]) -> list[object]:
    words = [sys.executable, "-c", DRIVER + script, folder / "store", *paths, json.dumps(task)]
    done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: list[object] = json.loads(done.stdout)
    return answer


def test_killed_at_each_step(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "a.json", "k")
    steps, found, again, seen, left = drive(STEPS, tmp_path, [path], [])
    assert isinstance(steps, int) and steps > 5
    assert isinstance(found, list) and found[0] == [[3000, 3000, 1]]
    assert all(one in ([], [[3000, 3000, 1]]) for one in found)
    assert [] in found
    assert isinstance(again, list) and again[1] is True
    assert (seen, left) == ([[3000, 3000, 1]], [])


def test_killed_at_random(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "a.json", "k", 30_000)
    draw = random.Random(7)
    delays = [draw.uniform(0.01, 0.3) for _ in range(8)]
    found, _, seen, left = drive(DELAYS, tmp_path, [path], delays)
    assert isinstance(found, list)
    whole = [[30_000, 30_000, 1]]
    assert any(killed for killed, _ in found)
    assert all(one in ([], whole) for _, one in found)
    assert (seen, left) == (whole, [])


@pytest.mark.parametrize("task", [[0, 0], [0, 1], [0, 0, 0, 0], [0, 1, 2, 3]], ids=str)
def test_side_by_side(tmp_path: Path, task: list[float]) -> None:
    paths = [write_trace(tmp_path / f"{number}.json", f"k{number}") for number in range(4)]
    answers, seen, left = drive(AT_ONCE, tmp_path, paths, task)
    assert isinstance(answers, list)
    ids = {trace_id for trace_id, _, _ in answers}
    assert len(ids) == len(set(task))
    assert sorted(trace_id for trace_id, fresh, _ in answers if fresh) == sorted(ids)
    assert (seen, left) == ([[3000, 3000, 1]] * len(ids), [])
