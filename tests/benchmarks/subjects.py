"""The traces that are measured: made ones of any size and layout, and real ones."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

from .process import ROOT, Process, run

TRACES = ROOT / ".." / "shared" / "traces"
REAL = (
    "sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz",
    "vllm_gpt_oss_120b_prefill_b200.json.gz",
)
"""Some 15 MB of JSON each: one that cannot be split, one that can."""
REPEATED = "train_ns_resolution_rank0.json.gz"
"""Training on real times since 1970, in Kineto's layout: what large traces are made of."""


@dataclass(frozen=True)
class Subject:
    """A trace to measure on: its file, sizes as JSON and as stored, a boundary kernel, options."""

    name: str
    path: Path
    raw_bytes: int
    file_bytes: int
    anchor: str
    options: tuple[str, ...] = ()

    @property
    def megabytes(self) -> float:
        return self.raw_bytes / 1e6


def subject(name: str, path: Path, anchor: str, options: tuple[str, ...] = ()) -> Subject:
    """Describe a trace; the size of gzipped JSON is what its last four bytes say (below 4 GiB)."""
    raw = stored = path.stat().st_size
    if path.suffix == ".gz":
        with path.open("rb") as file:
            file.seek(-4, 2)
            raw = int(struct.unpack("<I", file.read(4))[0])
    return Subject(name, path, raw, stored, anchor, options)


def real_subjects() -> tuple[list[Subject], list[str]]:
    """Return the traces of REAL, and a note for each that is absent."""
    found = [TRACES / name for name in REAL if (TRACES / name).exists()]
    notes = [f"{name}: not in shared/traces/" for name in REAL if not (TRACES / name).exists()]
    return [subject(path.name.removesuffix(".json.gz"), path, "norm") for path in found], notes


def made_subject(
    folder: Path, megabytes: float, layout: str = "kineto", suffix: str = ".json.gz"
) -> Subject:
    """Write a made trace of about that size, by a process of its own."""
    path = folder / f"made_{layout}_{megabytes:g}{suffix}"
    _write(path, megabytes, "--layout", layout)
    config = folder / "config.json"
    if not config.exists():
        # Here, not above: the maker would stay in memory, and a child's peak starts at ours.
        code = (
            "import json; from tests.benchmarks import traces; print(json.dumps(traces.config()))"
        )
        run(
            Process(
                "config", ["-c", f"import sys; sys.stdout = open({str(config)!r}, 'w'); {code}"]
            )
        )
        json.loads(config.read_text(encoding="utf-8"))
    options = ("--config", str(config))
    return subject(f"made, {layout}", path, "FusedAddRMSNorm", options)


def repeated_subject(folder: Path, megabytes: float) -> Subject | None:
    """Write REPEATED over and over, with later times and higher ids; None where it is absent."""
    if not (TRACES / REPEATED).exists():
        return None
    path = folder / f"repeated_{megabytes:g}.json.gz"
    _write(path, megabytes, "--like", str(TRACES / REPEATED))
    name = f"{REPEATED.removesuffix('.json.gz')}, repeated"
    return subject(name, path, "norm")


def _write(path: Path, megabytes: float, *options: str) -> None:
    command = ["-m", "tests.benchmarks.traces", str(path), "--megabytes", f"{megabytes:g}"]
    run(Process(path.name, [*command, *options]))
