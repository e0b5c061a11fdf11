"""Whether the machine is quiet enough for its seconds to mean something."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

_BUSY = 0.4
_WAITED = 1.1


class Machine:
    """Looks at the load before each table; `notes` says what was found."""

    def __init__(self) -> None:
        self._loads: list[float] = []
        self._waits: list[float] = []

    def look(self) -> None:
        """Run a loop that needs one core: where it waits for one, others are at work."""
        wall, cpu = time.perf_counter(), time.process_time()
        total = 0
        while time.process_time() - cpu < 0.1:
            total += 1
        self._waits.append((time.perf_counter() - wall) / (time.process_time() - cpu))
        if not self._loads:
            # Later the load is our own.
            self._loads.append(os.getloadavg()[0])

    def notes(self) -> list[str]:
        found = []
        if self._loads and self._loads[0] > _BUSY:
            found.append(f"a load of {self._loads[0]:.1f} before the first measurement")
        if self._waits and max(self._waits) > _WAITED:
            found.append(f"a loop on one core took {max(self._waits):.2f} of its processor time")
        if not found:
            return []
        return [f"NOISY MACHINE: {'; '.join(found)}. Compare ratios and CPU, not wall seconds."]


def described() -> str:
    memory = free_bytes()
    free = f", {memory / 1e9:.0f} GB free" if memory < 1 << 60 else ""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}{free}"


def free_bytes() -> int:
    """Return the memory that processes can have without swapping; no limit where unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 1 << 60
    values = dict(line.split(":", 1) for line in lines)
    return int(values["MemAvailable"].split()[0]) * 1024
