"""Time and peak memory of whole processes, as a person waits for them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSED = (4, 5)
"""Exit codes of an analysis that was made and whose answer is that there is none."""


@dataclass(frozen=True)
class Measured:
    """The median of some runs: wall and processor seconds, and the most resident memory in MB.

    Processor seconds of all threads say what a loaded machine would need.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    code: int


class BenchmarkError(Exception):
    """A command that failed; holds what it said."""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end, its output thrown away."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        # Not process.wait: only wait4 tells the memory of this child alone.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = code = os.waitstatus_to_exitcode(status)
        if code not in (0, *REFUSED):
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines() or ["no words"]
            raise BenchmarkError(f"{' '.join(command)}: exit {code}: {words[-1]}")
    unit = 1 if sys.platform == "darwin" else 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(seconds, cpu, usage.ru_maxrss * unit / 1e6, code)


def median(measure: Callable[[], Measured], runs: int) -> Measured:
    """Return the median times of some runs, with the largest peak of all."""
    done = sorted((measure() for _ in range(runs)), key=lambda one: one.seconds)
    seconds = statistics.median(one.seconds for one in done)
    cpu = statistics.median(one.cpu_seconds for one in done)
    return Measured(seconds, cpu, max(one.peak_mb for one in done), done[0].code)
