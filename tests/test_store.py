"""The store: what is kept, found and refused, also when processes race or are killed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from trace_sql import arrival, path_memory, store
from trace_sql.errors import BadInputError, LossyError, TraceSqlError, UsageError
from trace_sql.events import SCHEMA_VERSION
from trace_sql.flatten import Flattened
from trace_sql.source import TraceFile
from trace_sql.store import Settings, Store, default_folder

REPO = Path(__file__).resolve().parents[1]


def write_trace(path: Path, kernel: str = "k", events: int = 1) -> Path:
    event = {"ph": "X", "cat": "kernel", "name": kernel, "ts": 1, "dur": 2, "args": {"device": 0}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"traceEvents": [event] * events}))
    return path


def content_id(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes()).hexdigest()[:12]


def kernels(entry: store.TraceEntry) -> list[str]:
    rows = duckdb.execute(f"select name from read_parquet('{entry.events_path}')").fetchall()
    return [name for (name,) in rows]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust files that were just written, which the store does not do on its own."""
    monkeypatch.setattr(path_memory, "_SETTLED_NS", 0)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files whose content is hashed from here on."""
    seen: list[Path] = []
    hash_content = path_memory.content_id

    def record(file: TraceFile) -> str:
        seen.append(file.path)
        return hash_content(file)

    monkeypatch.setattr(store, "content_id", record)
    return seen


def test_ingest_then_again(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "a.pt.trace.json")
    kept = Store(tmp_path / "store")
    first = kept.ingest(path, Settings(run="r"))
    trace_id = content_id(path)
    assert (first.trace_id, first.name, first.fresh) == (trace_id, "a", True)
    second = kept.ingest(path, Settings(phase="decode"))
    assert (second.trace_id, second.name, second.fresh) == (trace_id, "a", False)
    (entry,) = kept.traces()
    assert entry == kept.entry(trace_id)
    assert entry.folder == tmp_path / "store" / f"v{SCHEMA_VERSION}" / "traces" / trace_id
    assert sorted(file.name for file in entry.folder.iterdir()) == [
        "events.parquet",
        "facts.parquet",
        "losses.parquet",
        "settings.json",
    ]
    assert entry.settings == Settings(run="r", phase="decode", name="a")
    assert kernels(entry) == ["k"]
    facts = duckdb.execute(f"select trace_id, name from '{entry.facts_path}'").fetchall()
    assert facts == [(trace_id, "a")]
    assert list((tmp_path / "store" / f"v{SCHEMA_VERSION}" / "tmp").iterdir()) == []


def test_same_content_elsewhere_is_the_same_trace(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    first = kept.ingest(write_trace(tmp_path / "a.json"))
    second = kept.ingest(write_trace(tmp_path / "b.json"))
    assert (second.trace_id, second.name, second.fresh) == (first.trace_id, "a", False)
    assert kept.find_path(tmp_path / "b.json") == first.trace_id


def test_unchanged_file_is_not_hashed_again(
    tmp_path: Path, settled: None, hashed: list[Path]
) -> None:
    path = write_trace(tmp_path / "a.json")
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(path).trace_id
    assert hashed == [path]
    assert kept.find_path(path) == trace_id
    assert not kept.ingest(path).fresh
    assert hashed == [path]


def test_file_written_just_now_is_not_trusted(tmp_path: Path, hashed: list[Path]) -> None:
    path = write_trace(tmp_path / "a.json")
    kept = Store(tmp_path / "store")
    kept.ingest(path)
    kept.find_path(path)
    assert hashed == [path, path]


def test_changed_file_is_never_served_stale(tmp_path: Path, settled: None) -> None:
    path = write_trace(tmp_path / "a.json", "old")
    kept = Store(tmp_path / "store")
    old = kept.ingest(path)
    before = path.stat()
    write_trace(path, "new")
    # Same size, inode and mtime: as a copy that keeps times would leave it.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert kept.find_path(path) is None
    new = kept.ingest(path)
    assert new.fresh
    assert kept.find_path(path) == new.trace_id != old.trace_id
    assert kernels(kept.entry(new.trace_id)) == ["new"]
    assert kernels(kept.entry(old.trace_id)) == ["old"]


def test_file_changed_during_ingest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_trace(tmp_path / "a.json")
    kept = Store(tmp_path / "store")

    def grow(done: int, size: int) -> None:
        os.utime(path, ns=(1, 1))

    with pytest.raises(BadInputError, match="changed while"):
        kept.ingest(path, progress=grow)
    assert kept.traces() == []


@pytest.mark.parametrize(
    ("text", "strict", "error", "words"),
    [
        ('{"traceEvents": [{"ph":', False, BadInputError, "no whole event.*byte 17"),
        ('{"traceEvents": [{"ph": "X"}, {"ph":', True, LossyError, "truncated at byte 30"),
    ],
)
def test_bad_trace_leaves_nothing(
    text: str, strict: bool, error: type[TraceSqlError], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    kept = Store(tmp_path / "store", strict=strict)
    with pytest.raises(error, match=words):
        kept.ingest(path)
    assert kept.traces() == []
    assert [file for file in (tmp_path / "store").rglob("*") if file.is_file()] == []
    with pytest.raises(BadInputError, match="No such file"):
        kept.ingest(tmp_path / "none.json")


def test_settings_merge_only_what_is_given(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(
        write_trace(tmp_path / "a.json"),
        Settings(run="r", tags={"gpu": "b200", "tp": "8"}, num_layers=36, config={"a": [1]}),
    ).trace_id
    kept.change_settings(trace_id, Settings(tags={"tp": "4"}, num_layers=0, name="new"))
    expected = Settings(
        run="r", tags={"gpu": "b200", "tp": "4"}, num_layers=0, config={"a": [1]}, name="new"
    )
    assert kept.settings(trace_id) == expected
    assert Store(tmp_path / "store").entry(trace_id).name == "new"
    stored = json.loads((kept.entry(trace_id).folder / "settings.json").read_text())
    assert stored == expected.given()
    assert None not in stored.values()


def test_every_setting_survives(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(write_trace(tmp_path / "a.json")).trace_id
    values: dict[str, Any] = {name: name for name in Settings._fields}
    everything = Settings(
        **values | {"tags": {"a": "b"}, "config": {"x": {"y": 1}}, "paths": ["p"], "to_ns": 2}
    )
    kept.change_settings(trace_id, everything)
    assert kept.settings(trace_id) == everything


@pytest.mark.parametrize("text", ["{", "[]", '{"unknown": 1}', "5"])
def test_damaged_settings_are_named(text: str, tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(write_trace(tmp_path / "a.json")).trace_id
    (kept.entry(trace_id).folder / "settings.json").write_text(text)
    with pytest.raises(UsageError, match=r"settings\.json: not settings"):
        kept.settings(trace_id)


def fill(kept: Store, entries: dict[str, str]) -> None:
    for trace_id, name in entries.items():
        folder = kept.folder / f"v{SCHEMA_VERSION}" / "traces" / trace_id
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps({"name": name}))


ENTRIES = {
    "aaaa00000001": "decode",
    "aaab00000002": "decode-long",
    "bbbb00000003": "prefill",
    "cccc00000004": "twin",
    "dddd00000005": "twin",
    "eeee00000006": "bbbb",
    "ffff00000007": "aaaa00000001x",
}


@pytest.mark.parametrize(
    ("text", "trace_id"),
    [
        ("aaaa00000001", "aaaa00000001"),
        ("aaab", "aaab00000002"),
        ("decode", "aaaa00000001"),
        ("decode-", "aaab00000002"),
        ("pre", "bbbb00000003"),
        ("bbbb", "eeee00000006"),
    ],
)
def test_resolve(text: str, trace_id: str, tmp_path: Path) -> None:
    kept = Store(tmp_path)
    fill(kept, ENTRIES)
    assert kept.resolve(text) == trace_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twin", r"2 traces.*cccc00000004 \(twin\), dddd00000005 \(twin\)"),
        ("dec", r"2 traces.*aaaa00000001 \(decode\), aaab00000002 \(decode-long\)"),
        ("aaaa", "2 traces"),
        ("nothing", "no trace 'nothing'.*known: .*prefill"),
    ],
)
def test_resolve_refuses(text: str, message: str, tmp_path: Path) -> None:
    kept = Store(tmp_path)
    fill(kept, ENTRIES)
    with pytest.raises(UsageError, match=message) as caught:
        kept.resolve(text)
    assert "\n" not in str(caught.value)


def test_empty_store(tmp_path: Path) -> None:
    kept = Store(tmp_path / "none")
    assert kept.traces() == []
    with pytest.raises(UsageError, match="store is empty"):
        kept.resolve("a")
    with pytest.raises(UsageError, match="ingest it first"):
        kept.entry("aaaa00000001")
    assert kept.find_path(write_trace(tmp_path / "a.json")) is None
    assert not (tmp_path / "none").exists()


def test_same_name_other_content(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    ids = [kept.ingest(write_trace(tmp_path / n / "a.json", n)).trace_id for n in ("x", "y")]
    assert [entry.name for entry in kept.traces()] == ["a", "a"]
    with pytest.raises(UsageError) as caught:
        kept.resolve("a")
    assert all(trace_id in str(caught.value) for trace_id in ids)


def test_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TRACE_SQL_STORE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / ".cache" / "trace_sql"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_folder() == tmp_path / "Library" / "Caches" / "trace_sql"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == tmp_path / "Library" / "Caches" / "trace_sql"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder() == tmp_path / "cache" / "trace_sql"
    monkeypatch.setenv("TRACE_SQL_STORE", "~/here")
    assert default_folder() == tmp_path / "here"


def test_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    with pytest.raises(TraceSqlError, match="cannot be written.*TRACE_SQL_STORE") as caught:
        Store(tmp_path / "store").ingest(write_trace(tmp_path / "a.json"))
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, BadInputError)


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(arrival, "write_json", full)
    kept = Store(tmp_path / "store")
    with pytest.raises(TraceSqlError, match="No space left"):
        kept.ingest(write_trace(tmp_path / "a.json"))
    assert kept.traces() == []


def test_trace_is_known_before_its_files_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    write = Flattened.write

    def wait(flat: Flattened, out: Path) -> None:
        assert gate.wait(30)
        write(flat, out)

    monkeypatch.setattr(Flattened, "write", wait)
    path = write_trace(tmp_path / "a.json", events=3)
    kept = Store(tmp_path / "store")
    trace_id = kept.take_in(path, Settings(run="r")).trace_id
    entry = kept.entry(trace_id)
    assert entry.settings == Settings(run="r", name="a")
    assert not entry.folder.exists()
    assert kept.find_path(path) == trace_id
    assert kept.take_flat("other") is None
    gate.set()
    assert kept.settle()
    assert kernels(kept.entry(trace_id)) == ["k"] * 3
    assert kept.entry(trace_id) == entry


def test_tables_of_a_new_trace_are_given_away_once(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "a.json", events=2)
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(path).trace_id
    tables = kept.take_flat(trace_id)
    assert tables is not None
    with tables:
        rows = tables.connection.execute("select rowid, name from flat_events").fetchall()
        assert rows == [(0, "k"), (1, "k")]
    assert kept.take_flat(trace_id) is None
    assert not kept.ingest(path).fresh
    assert kept.take_flat(trace_id) is None


def test_files_that_cannot_be_written_are_told_when_all_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(flat: Flattened, out: Path) -> None:
        (out / "events.parquet").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Flattened, "write", full)
    kept = Store(tmp_path / "store")
    path = write_trace(tmp_path / "a.json")
    with pytest.raises(TraceSqlError, match="No space left"):
        kept.ingest(path)
    assert kept.find_path(path) is None
    assert kept.traces() == []
    assert list((tmp_path / "store" / f"v{SCHEMA_VERSION}" / "tmp").iterdir()) == []


def test_known_trace_needs_no_writing(
    tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_trace(tmp_path / "a.json")
    kept = Store(tmp_path / "store")
    trace_id = kept.ingest(path).trace_id
    (path_file,) = (tmp_path / "store" / f"v{SCHEMA_VERSION}" / "paths").iterdir()
    path_file.unlink()

    def refuse(path: Path, content: dict[str, Any]) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store, "write_json", refuse)
    assert kept.find_path(path) == kept.ingest(path).trace_id == trace_id
    with pytest.raises(TraceSqlError, match="Read-only"):
        kept.ingest(path, Settings(run="new"))


def test_importing_the_store_is_light() -> None:
    code = "import sys, trace_sql.store; print(sorted({'duckdb', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True)
    assert done.stdout == "[]\n"


INGEST = """
import sys
from pathlib import Path
from trace_sql.store import Store
for path in sys.argv[2:]:
    done = Store(Path(sys.argv[1])).ingest(Path(path))
    print(done.trace_id, done.fresh)
"""


def start_ingest(folder: Path, *paths: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", INGEST, str(folder), *map(str, paths)],
        cwd=REPO,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not told apart by kill there")
def test_killed_ingest_leaves_nothing_visible(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "big.json", events=400_000)
    kept = Store(tmp_path / "store")
    work = tmp_path / "store" / f"v{SCHEMA_VERSION}" / "tmp"
    with start_ingest(kept.folder, path) as process:
        deadline = time.monotonic() + 30
        while not list(work.glob("*/events.parquet")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert [folder for folder in work.iterdir() if any(folder.iterdir())]
    assert kept.traces() == []
    assert kept.find_path(path) is None
    other = kept.ingest(write_trace(tmp_path / "small.json"))
    assert [entry.trace_id for entry in kept.traces()] == [other.trace_id]
    assert list(work.iterdir()) == []


def test_folders_of_running_ingests_stay(tmp_path: Path) -> None:
    kept = Store(tmp_path / "store")
    work = tmp_path / "store" / f"v{SCHEMA_VERSION}" / "tmp"
    here = platform.node()
    names = {
        f"{here}.{os.getpid()}.aaaa": True,
        f"{here}.{2**22 + 1}.aaaa": False,
        f"other.host.{2**22 + 1}.aaaa": True,
    }
    for name in names:
        (work / name).mkdir(parents=True)
    old = work / "other.host.1.bbbb"
    old.mkdir()
    os.utime(old, (1, 1))
    kept.ingest(write_trace(tmp_path / "a.json"))
    assert {folder.name for folder in work.iterdir()} == {name for name in names if names[name]}


def test_processes_at_once(tmp_path: Path) -> None:
    paths = [write_trace(tmp_path / f"{n}.json", n, 20_000) for n in ("a", "b", "c")]
    kept = Store(tmp_path / "store")
    same = [start_ingest(kept.folder, *order) for order in (paths, paths, paths[::-1])]
    answers = [process.communicate(timeout=60)[0].split() for process in same]
    assert [process.returncode for process in same] == [0, 0, 0]
    ids = {content_id(path) for path in paths}
    assert all(set(answer[::2]) == ids for answer in answers)
    fresh = [pair for answer in answers for pair in zip(answer[::2], answer[1::2], strict=True)]
    assert sorted(trace_id for trace_id, new in fresh if new == "True") == sorted(ids)
    assert {entry.trace_id for entry in kept.traces()} == ids
    assert [kernels(entry) for entry in kept.traces()] == [[n] * 20_000 for n in ("a", "b", "c")]
    assert list((tmp_path / "store" / f"v{SCHEMA_VERSION}" / "tmp").iterdir()) == []
