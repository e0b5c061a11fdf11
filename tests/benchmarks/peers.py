"""Other tools, each as a process that answers one question of its kind about a trace.

They run in `.peers`, an environment that `make peers` makes, so that their versions of packages
touch nothing of ours; what only this environment has is used from here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

from .process import ROOT, Process

ENVIRONMENT = ROOT / ".peers" / "bin" / "python"


@dataclass(frozen=True)
class Peer:
    """`code` runs with `path` set; `memory` is bytes a byte of JSON, about what was measured."""

    name: str
    module: str
    install: str
    code: str
    memory: float


PEERS = (
    Peer(
        "orjson.loads, nothing else",
        "orjson",
        "make peers",
        "import orjson; from isal import igzip;"
        "orjson.loads((igzip.open(path) if path.endswith('.gz') else open(path, 'rb')).read())",
        9,
    ),
    Peer(
        "HTA, load and 2 breakdowns",
        "hta",
        "make peers (PyPI has it as traceinsight, and as HolisticTraceAnalysis for pandas 2)",
        "from hta.trace_analysis import TraceAnalysis;"
        "t = TraceAnalysis(trace_files={0: path});"
        "t.get_gpu_kernel_breakdown(visualize=False); t.get_temporal_breakdown(visualize=False)",
        8,
    ),
    Peer(
        "TraceLens, kernel launchers",
        "TraceLens.TreePerf",
        ".peers/bin/pip install git+https://github.com/AMD-AGI/TraceLens (PyPI has another tool"
        " of that name)",
        "from TraceLens.TreePerf import TreePerfAnalyzer;"
        "TreePerfAnalyzer.from_file(path).get_df_kernel_launchers()",
        13,
    ),
    Peer(
        "Perfetto, load and 1 query",
        "perfetto.trace_processor",
        "make peers (it fetches its binary when first used)",
        "from perfetto.trace_processor import TraceProcessor;"
        "t = TraceProcessor(trace=path);"
        "list(t.query('select name, sum(dur) from slice group by name'))",
        3,
    ),
)


@cache
def _modules(python: str) -> dict[str, bool]:
    """Say which peers' modules an interpreter finds."""
    names = [peer.module for peer in PEERS]
    code = (
        "import json, sys, importlib.util as u\n"
        "def has(name):\n"
        "    try:\n        return u.find_spec(name) is not None\n"
        "    except ImportError:\n        return False\n"
        "print(json.dumps({name: has(name) for name in sys.argv[1:]}))"
    )
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True)
    found: dict[str, bool] = json.loads(done.stdout)
    return found


def peer_processes(path: str, raw_bytes: int, free_bytes: int) -> tuple[list[Process], list[str]]:
    """Return the peers that can run on a trace of that size, and notes on the others."""
    pythons = [str(ENVIRONMENT)] if ENVIRONMENT.exists() else []
    processes: list[Process] = []
    notes: list[str] = []
    for peer in PEERS:
        python = next((p for p in [*pythons, sys.executable] if _modules(p)[peer.module]), None)
        if python is None:
            notes.append(f"{peer.name.partition(',')[0]}: not installed; {peer.install}")
        elif peer.memory * raw_bytes > free_bytes:
            notes.append(f"{peer.name.partition(',')[0]}: {raw_bytes / 1e6:.0f} MB would not fit")
        else:
            code = f"path = {path!r}; {peer.code}"
            processes.append(Process(peer.name, ["-c", code], python, limit_s=900))
    return processes, notes
