"""Memory: the analysis of a large trace keeps to a limit and leaves no files behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "fixtures" / "demo" / "gpt-oss-TP-0.trace.json.gz"

ANALYSIS = """
import sys
from pathlib import Path
from trace_sql import analysis, engine
from trace_sql.database import Database
from trace_sql.store import Settings, Store

analysis._SMALL = int(sys.argv[3])
store, settings = Store(Path(sys.argv[1])), Settings(num_layers=12)
trace_id = store.ingest(Path(sys.argv[2])).trace_id
for _ in range(2):
    with Database(Store(store.folder), {trace_id: settings}) as database:
        print(database.query("select count(*) from layers").rows[0][0])
        limit, folder = database.query(
            "select current_setting('memory_limit'), current_setting('temp_directory')"
        ).rows[0]
        print(limit, Path(folder).is_relative_to(store.tmp), engine.spills())
print(len(list(store.tmp.iterdir())))
"""


def analysed(store: Path, small: int) -> list[str]:
    command = [sys.executable, "-c", ANALYSIS, str(store), str(TRACE), str(small)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_large_trace_is_analysed_in_bounded_memory(tmp_path: Path) -> None:
    first, limits, again, limits_again, n_folders = analysed(tmp_path, small=-1)
    assert int(first) > 0
    assert (again, limits_again) == (first, limits)
    size, unit, inside, spills = limits.split()
    assert unit == "MiB"
    assert float(size) <= 1000
    assert (inside, spills, n_folders) == ("True", "True", "1")
    # The folder goes with the process.
    assert list((next(tmp_path.glob("v*")) / "tmp").iterdir()) == []


def test_a_small_one_makes_no_folder(tmp_path: Path) -> None:
    *_, spills, n_folders = analysed(tmp_path, small=8 << 20)
    assert spills.endswith("False False")
    assert n_folders == "0"
