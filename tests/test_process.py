"""The command as a process of its own: pipes, signals, encodings, and machines that fail it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, TRACE, command, refused

from trace_sql.errors import ExitCode

ONE_LINE = re.compile(rb"trace-sql: error: [^\n]+\n")
POSIX = pytest.mark.skipif(os.name == "nt", reason="limits and signals of POSIX")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capabilities of Linux")


def start(store: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "trace_sql", "--store", str(store), *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(
    store: Path,
    *words: object,
    before: Callable[[], None] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; `before` runs in its process, before it."""
    return subprocess.run(
        [sys.executable, "-m", "trace_sql", "--store", str(store), *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=before,
        timeout=60,
    )


@pytest.fixture
def own(tmp_path: Path, store: Path, demo: str) -> Path:
    """A store of the test's own that holds the demo trace, and views of it."""
    return Path(shutil.copytree(store, tmp_path / "own"))


# Streams.


def test_a_reader_that_stops_early_is_no_error(store: Path, demo: str) -> None:
    process = start(store, "sql", "select * from range(100000)")
    assert process.stdout and process.stderr
    assert process.stdout.readline().split() == ["range"]
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == ExitCode.OK


def test_a_slow_reader_gets_all(store: Path, demo: str) -> None:
    process = start(store, "sql", "select * from range(100000)", "--format", "csv")
    assert process.stdout and process.stderr
    time.sleep(1.5)
    assert process.stdout.read().split() == ["range", *map(str, range(100000))]
    assert (process.stderr.read(), process.wait(60)) == ("", ExitCode.OK)
    process.stdout.close()
    process.stderr.close()


def test_nothing_is_left_when_the_process_ends(store: Path, demo: str, tmp_path: Path) -> None:
    code = (
        "import atexit, threading, time; from pathlib import Path\n"
        "from trace_sql.__main__ import main\n"
        f"late, last = Path({str(tmp_path / 'late')!r}), Path({str(tmp_path / 'last')!r})\n"
        "threading.Thread(target=lambda: (time.sleep(1), late.touch())).start()\n"
        "atexit.register(lambda: late.rename(last))\n"
        "main()"
    )
    words = [sys.executable, "-c", code, "--store", str(store), "passes", "nosuch"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode == ExitCode.USAGE
    assert ONE_LINE.fullmatch(done.stderr)
    assert (tmp_path / "last").exists()


@POSIX
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
def test_streams_that_are_closed(store: Path, demo: str, closed: tuple[int, ...]) -> None:
    def before() -> None:
        for stream in closed:
            os.close(stream)

    done = finish(store, "passes", demo, before=before)
    assert done.returncode == ExitCode.OK
    assert bool(done.stdout) == (1 not in closed)
    assert done.stderr.startswith(b"" if 2 in closed else b"coverage: ")
    failed = finish(store, "passes", "nosuch", before=before)
    assert (failed.returncode, failed.stdout) == (ExitCode.USAGE, b"")
    assert 2 in closed or ONE_LINE.fullmatch(failed.stderr)


@POSIX
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}, b"\xe9\\u6838"),
        ({"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}, b"\xe9\\u6838"),
        ({"PYTHONIOENCODING": "ascii"}, "é核".encode()),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "é核".encode()),
        ({"TERM": "dumb", "COLUMNS": "0"}, "é核".encode()),
    ],
    ids=str,
)
def test_an_encoding_is_no_error(store: Path, environment: dict[str, str], expected: bytes) -> None:
    done = finish(store, "sql", "select 'é核' as a", environment=environment)
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")
    assert done.stdout.splitlines()[-1] == expected


# Signals.


@POSIX
def test_interrupt_is_130(store: Path) -> None:
    query = "select sum(a.range * b.range) from range(10000000) a, range(1000000) b"
    process = start(store, "sql", query)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("", "trace-sql: error: interrupted\n")
    assert process.returncode == ExitCode.INTERRUPTED


# Disks and memory.


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line(store: Path, demo: str) -> None:
    words = [sys.executable, "-m", "trace_sql", "--store", str(store), "passes", demo]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == ExitCode.FAILED
    assert re.fullmatch(r"trace-sql: error: the answer [^\n]+\n", done.stderr)


@POSIX
@pytest.mark.parametrize("command", ["ingest", "passes"])
@pytest.mark.parametrize("most", [0, 20_000])
def test_a_store_that_is_full_is_left_as_it_was(tmp_path: Path, command: str, most: int) -> None:
    import resource

    def before() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = finish(tmp_path / "store", command, TRACE, before=before)
    assert (done.returncode, done.stdout) == (ExitCode.FAILED, b"")
    assert ONE_LINE.fullmatch(done.stderr), done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert finish(tmp_path / "store", "ingest", TRACE).returncode == ExitCode.OK


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_is_one_line(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A real limit ends the process anywhere, even in the loader of its libraries.
    def read(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("trace_sql.flatten.load", read)
    refused(command(tmp_path / "store", "passes", TRACE), ExitCode.FAILED, "out of memory")


@LINUX
def test_a_store_that_may_not_be_written(own: Path, tmp_path: Path) -> None:
    def before() -> None:
        # What lets root write everywhere: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
        for capability in (1, 2):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)

    other = tmp_path / "other.json"
    other.write_text('{"traceEvents": [{"ph": "i", "name": "a", "ts": 1}]}')
    folders = [own, *(path for path in own.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        failed = finish(own, "ingest", other, before=before)
        assert (failed.returncode, failed.stdout) == (ExitCode.FAILED, b"")
        assert re.fullmatch(rb"trace-sql: error: [^\n]*own: store cannot be .*\n", failed.stderr)
        shown = finish(own, "sql", "gpt-oss-TP-0", "select n_events from traces", before=before)
        assert (shown.returncode, shown.stdout.split()[-1]) == (ExitCode.OK, b"5512")
        for folder in folders:
            folder.chmod(0)
        failed = finish(own, "traces", before=before)
        assert (failed.returncode, failed.stdout) == (ExitCode.USAGE, b"")
        assert ONE_LINE.fullmatch(failed.stderr)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in (["ingest", TRACE], ["traces"], ["sql", "select 1"]):
        done = finish(tmp_path / "file", *words)
        assert (done.returncode, done.stdout) == (ExitCode.USAGE, b"")
        assert ONE_LINE.fullmatch(done.stderr)


def test_damaged_files_of_a_store_are_one_line(own: Path, demo: str) -> None:
    for path in own.glob(f"v*/traces/{demo}/**/*.parquet"):
        path.write_bytes(path.read_bytes()[:40])
    for words in (["passes", demo], ["sql", demo, "from kernels"], ["traces"]):
        done = finish(own, *words)
        assert (done.returncode, done.stdout) == (ExitCode.FAILED, b""), done.stderr
        assert ONE_LINE.fullmatch(done.stderr), done.stderr


# Places.


def test_no_folder_for_temporary_files(tmp_path: Path) -> None:
    done = finish(tmp_path / "store", "ingest", TRACE, environment={"TMPDIR": str(tmp_path / "no")})
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")


@POSIX
def test_no_home(tmp_path: Path) -> None:
    unset = {"TRACE_SQL_STORE", "HOME", "XDG_CACHE_HOME"}
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    words = [sys.executable, "-m", "trace_sql", "profiles"]
    for home in ({}, {"HOME": str(tmp_path / "nowhere")}, {"HOME": ""}):
        done = subprocess.run(words, cwd=ROOT, env={**environment, **home}, capture_output=True)
        assert (done.returncode, done.stderr) == (ExitCode.OK, b"")
    nobody = "import pwd\nfrom trace_sql.cli import main\npwd.getpwuid = {}.__getitem__\nmain()"
    words = [sys.executable, "-c", nobody, "traces"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, b"")
    assert re.fullmatch(rb"trace-sql: error: you have no home [^\n]*\n", done.stderr), done.stderr
    environment["HOME"] = str(TRACE)
    words = [sys.executable, "-m", "trace_sql", "ingest", str(TRACE)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, done.stdout) == (ExitCode.FAILED, b"")
    assert ONE_LINE.fullmatch(done.stderr)


@POSIX
def test_a_folder_that_is_gone(store: Path, demo: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [sys.executable, "-m", "trace_sql", "--store", str(store), "passes", demo]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        words, cwd=gone, env=environment, capture_output=True, preexec_fn=gone.rmdir
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout
