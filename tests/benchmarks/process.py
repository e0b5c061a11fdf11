"""Time and peak memory of whole processes, as a person waits for them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSED = (4, 5)
"""Exit codes of an analysis that was made and whose answer is that there is none."""
_UNIT = 1 if sys.platform == "darwin" else 1024
_SAMPLE_S = 0.03


@dataclass(frozen=True)
class Measured:
    """The median of some runs: wall and processor seconds, and the most resident memory in MB.

    Processor seconds of all threads say what a loaded machine would need. Memory is that of the
    process and all its descendants at once, where the system tells it, else of the largest one.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    code: int
    spread: float = 1.0
    """The longest run over the shortest."""


class BenchmarkError(Exception):
    """A command that failed; holds what it said."""


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Process:
    """A command to measure; `before` makes ready what it finds, and is not measured."""

    name: str
    command: Sequence[str]
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = _nothing
    limit_s: float = 1200


def run(process: Process) -> Measured:
    """Run a process to its end, its output thrown away."""
    process.before()
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        child = subprocess.Popen(
            [process.python, *process.command],
            cwd=ROOT,
            env={**os.environ, **process.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        watch = _Watch(child.pid, process.limit_s)
        # Not Popen.wait: only wait4 tells the memory and processor time of this child.
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = code = os.waitstatus_to_exitcode(status)
        tree_bytes = watch.end()
        if code not in (0, *REFUSED):
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines() or ["no words"]
            what = "too slow" if watch.late else f"exit {code}"
            raise BenchmarkError(f"{what}: {words[-1][-120:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(seconds, cpu, max(usage.ru_maxrss * _UNIT, tree_bytes) / 1e6, code)


def median(runs: Sequence[Measured]) -> Measured:
    """Return the median times of some runs, with the largest peak of all."""
    times = [one.seconds for one in runs]
    return Measured(
        statistics.median(times),
        statistics.median(one.cpu_seconds for one in runs),
        max(one.peak_mb for one in runs),
        runs[0].code,
        max(times) / min(times),
    )


def rounds(processes: Sequence[Process], count: int) -> dict[str, list[Measured] | BenchmarkError]:
    """Run all processes, `count` times in turn; what fails once is not tried again.

    In turn, because the speed of a shared machine drifts: the n-th runs can be compared.
    """
    results: dict[str, list[Measured]] = {process.name: [] for process in processes}
    failed: dict[str, BenchmarkError] = {}
    for _ in range(count):
        for process in processes:
            if process.name in failed:
                continue
            try:
                results[process.name].append(run(process))
            except BenchmarkError as error:
                failed[process.name] = error
    return results | failed


def ratio(ours: Sequence[Measured], other: Sequence[Measured]) -> tuple[float, float]:
    """Return what ours takes of the other's wall and processor time.

    Of runs in the same rounds it is the median of each round's ratio, which drift moves least.
    """
    if len(ours) != len(other):
        ours, other = [median(ours)], [median(other)]
    pairs = list(zip(ours, other, strict=True))
    return (
        statistics.median(mine.seconds / its.seconds for mine, its in pairs),
        statistics.median(mine.cpu_seconds / its.cpu_seconds for mine, its in pairs),
    )


class _Watch:
    """Adds up the resident memory of a process and its descendants now and then; ends late ones."""

    late = False

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid = pid
        self._until = time.monotonic() + limit_s
        self._peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            self._peak = max(self._peak, _tree_bytes(self._pid))
            if time.monotonic() > self._until:
                self.late = True
                # The process is not waited for yet or just now, so the number is still its own.
                os.kill(self._pid, 9)
                return

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self._peak


def _tree_bytes(pid: int) -> int:
    """Return the resident bytes of a process and its descendants, 0 where /proc does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [one for task in tasks for one in (task / "children").read_text().split()]
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_tree_bytes(int(one)) for one in children)
