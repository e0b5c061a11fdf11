"""One trace: the first answer, the next ones, and a plain Python reading beside them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fixtures import Scenario, kind, serving, write_big
from trace_sql.output import Column, Table

from .process import REFUSED, ROOT, BenchmarkError, Measured, median, run

TRACES = ROOT / ".." / "shared" / "traces"
REAL = (
    "sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz",
    "vllm_gpt_oss_120b_prefill_b200.json.gz",
)
"""Some 15 MB of JSON each: one that cannot be split, one that can."""
BASELINE = str(Path(__file__).with_name("baseline.py"))
PEERS = {
    "HTA": (
        "hta",
        "pip install HolisticTraceAnalysis 'pandas<3'",
        "from hta.trace_analysis import TraceAnalysis as T;"
        "T(trace_files={{0: {path!r}}}).get_gpu_kernel_breakdown(visualize=False)",
    ),
    "TraceLens": (
        "TraceLens",
        "pip install git+https://github.com/AMD-AGI/TraceLens",
        "from TraceLens.TreePerf import TreePerfAnalyzer as T;"
        "T.from_file({path!r}).get_df_kernel_launchers()",
    ),
}
"""Module, how to install it, and one whole-process question of its kind."""


@dataclass(frozen=True)
class Subject:
    """A trace to measure on: its file, size as JSON, a boundary kernel, options to split it."""

    name: str
    path: Path
    raw_bytes: int
    anchor: str
    options: tuple[str, ...] = ()


def raw_size(path: Path) -> int:
    """Return the size of the JSON: what gzip's last four bytes say (below 4 GiB)."""
    with path.open("rb") as file:
        file.seek(-4, 2)
        return int(struct.unpack("<I", file.read(4))[0])


def real_subjects() -> tuple[list[Subject], list[str]]:
    """Return the largest shared trace and those of REAL, and a note for what is absent."""
    found = sorted(TRACES.glob("*.json.gz"), key=raw_size)
    names = {path.name for path in found}
    paths = {path.name: path for path in [*found[-1:], *(p for p in found if p.name in REAL)]}
    notes = [f"{name}: not in shared/traces/" for name in REAL if name not in names]
    return [
        Subject(name.removesuffix(".json.gz"), path, raw_size(path), "norm")
        for name, path in paths.items()
    ], notes


def made_subject(folder: Path, megabytes: float) -> Subject:
    """Write a trace of about that size, in a few MB of memory."""
    model = kind("sglang_llama_nvidia")
    config = model.model_config()
    path = folder / "made.json.gz"
    scenario = Scenario(passes=serving(), frames="modules")
    write_big(config, model, scenario, path, megabytes)
    config_path = folder / "config.json"
    config_path.write_text(json.dumps(config), encoding="utf-8")
    options = ("--config", str(config_path))
    return Subject(f"made, {megabytes:g} MB", path, raw_size(path), "FusedAddRMSNorm", options)


def speed_table(subjects: list[Subject], quick: bool) -> tuple[Table, list[str]]:
    """Measure every subject; returns the table and notes on it."""
    rows: list[tuple[object, ...]] = []
    notes: list[str] = []
    for subject in subjects:
        rows += measured(subject, 1 if quick else 3, 1 if quick else 5, notes)
    shown = median(lambda: run(["-m", "trace_sql", "--help"]), 1 if quick else 5)
    rows.append(("", "trace-sql --help", *cost(shown), None, verdict(shown, 0.15)))
    columns = (
        Column("trace", "Trace", wrap=True),
        Column("process", "Process"),
        Column("seconds", "Wall s", 2),
        Column("cpu_seconds", "CPU s", 2),
        Column("peak_mb", "Peak MB", 0),
        Column("rate", "MB/s", 0),
        Column("target", "Target"),
    )
    return Table("speed", "Whole processes, medians", columns, rows), notes


def measured(
    subject: Subject, runs: int, warm_runs: int, notes: list[str]
) -> Iterator[tuple[object, ...]]:
    megabytes = subject.raw_bytes / 1e6
    path = str(subject.path)
    with tempfile.TemporaryDirectory(prefix="trace-sql-bench.") as name:
        store = Path(name) / "store"
        environment = {"TRACE_SQL_STORE": str(store)}

        def command(word: str, *options: str) -> Measured:
            return run(["-m", "trace_sql", word, path, *options], environment)

        def fresh(word: str, *options: str) -> Measured:
            shutil.rmtree(store, ignore_errors=True)
            return command(word, *options)

        plain = median(lambda: run([BASELINE, path, subject.anchor]), runs)
        ingest = median(lambda: fresh("ingest"), runs)
        cold = median(lambda: fresh("passes", *subject.options), runs)
        warm = median(lambda: command("passes", *subject.options), warm_runs)
    label = f"{subject.name} ({megabytes:.0f} MB of JSON)"
    ratio = cold.seconds / plain.seconds
    kept = "kept" if ratio < 1 else "MISSED"
    yield label, "json.load and loops", *cost(plain), None, ""
    yield (
        "",
        "ingest, fresh store",
        *cost(ingest),
        megabytes / ingest.seconds,
        "",
    )
    yield (
        "",
        "passes, fresh store",
        *cost(cold),
        None,
        f"{ratio:.2f} of loops, < 1: {kept}",
    )
    yield "", "passes again", *cost(warm), None, verdict(warm, 0.5)
    if cold.code in REFUSED:
        notes.append(f"{subject.name}: analysed and refused (exit {cold.code})")
    for peer, (module, how, code) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            note = f"{peer} is not installed: {how}"
            notes += [note] if note not in notes else []
            continue
        try:
            other = median(lambda code=code: run(["-c", code.format(path=path)]), runs)  # type: ignore[misc]
        except BenchmarkError as error:
            notes.append(f"{subject.name}: {peer} failed ({str(error)[-60:]})")
            continue
        yield "", f"{peer}, one question", *cost(other), None, ""


def cost(measured: Measured) -> tuple[float, float, float]:
    return measured.seconds, measured.cpu_seconds, measured.peak_mb


def verdict(shown: Measured, target: float) -> str:
    kept = "kept" if shown.seconds < target else "MISSED"
    return f"< {target:g} s: {kept}"
