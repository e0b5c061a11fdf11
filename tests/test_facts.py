"""What is known of a trace as a whole: its one row of facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flattened import both, flattened

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"
TRACES = sorted((SHARED / "traces").rglob("*.json.gz"))
CASES = SHARED / "cases"


@pytest.mark.skipif(not TRACES, reason="needs the real traces in ../shared/traces")
def test_facts_of_real_traces(tmp_path: Path) -> None:
    _, amd = both(SHARED / "traces" / "vllm_gpt_oss_20b_decode_mi300x.json.gz", tmp_path / "a")
    assert (amd["vendor"], amd["gpu"], amd["with_stack"]) == ("amd", None, True)
    _, ranks = both(SHARED / "traces" / "ranks" / "sampled_rank-1.json.gz", tmp_path / "b")
    assert (ranks["rank"], ranks["rank_source"], ranks["world_size"]) == (1, "header", 128)
    assert (ranks["vendor"], ranks["record_shapes"]) == ("nvidia", True)


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the odd inputs in ../shared/cases")
def test_facts_of_odd_inputs(tmp_path: Path) -> None:
    _, after = both(CASES / "09_metadata_after_events.json", tmp_path / "09")
    assert (after["rank"], after["world_size"]) == (3, 8)
    assert after["base_time_ns"] == 1_700_000_000_000_000_000
    assert json.loads(after["warnings"]) == ["WARN toy line 1", "event_id: 64"]
    rows, _ = both(CASES / "10_ts_as_strings_epoch_ns.json", tmp_path / "10")
    kernels = [(row["ts_ns"], row["dur_ns"]) for row in rows if row["cat"] == "kernel"]
    assert kernels == [
        (1767225600123456100, 300),
        (1767225600123456500, 300),
        (1767225600123456900, 2000),
    ]
    _, lost = both(CASES / "11_zero_ts_kernels.json", tmp_path / "11")
    assert (lost["n_device_events"], lost["n_without_time"]) == (7, 4)
    assert json.loads(lost["warnings"]) == ["4 device events have no time"]
    _, empty = both(CASES / "22_metadata_only.json", tmp_path / "22")
    assert (empty["n_device_events"], empty["min_ts_ns"], empty["max_end_ns"]) == (0, None, None)
    assert empty["vendor"] == "unknown"
    rows, old = both(CASES / "23_old_category_spelling.json", tmp_path / "23")
    assert (old["n_device_events"], old["max_end_ns"]) == (2, 290_000)
    assert [row["external_id"] for row in rows if row["cat"] == "Kernel"] == [9]
    _, two = both(CASES / "32_host_pid_equals_device_id.json", tmp_path / "32")
    assert (two["n_device_events"], two["n_devices"]) == (5, 2)


@pytest.mark.parametrize(
    ("file_name", "metadata", "rank", "source"),
    [
        ("a-rank9.json", {"distributedInfo": {"rank": 3, "world_size": 8}}, 3, "header"),
        ("a-rank9.json", {"distributedInfo": {"rank": "3"}}, 3, "header"),
        ("a-rank9.json", {"distributedInfo": []}, 9, "name"),
        ("1700000000.1-TP-10-EP-2-DECODE.trace.json.gz", {}, 10, "name"),
        ("1700000000.1-TP-3.trace.json.gz", {}, 3, "name"),
        ("1700000000.1-TP-1-DP-2-PP-0.trace.json.gz", {}, 1, "name"),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.17000.pt.trace.json.gz", {}, 1, "name"),
        ("rank0_trace.json", {}, 0, "name"),
        ("sampled_rank-12.json.gz", {}, 12, "name"),
        ("rank1_of_rank2.json", {}, None, "unknown"),
        ("frank1.json", {}, None, "unknown"),
        ("merged-1700000000.1.trace.json.gz", {}, None, "unknown"),
        ("host_321.async_llm.1700.pt.trace.json.gz", {}, None, "unknown"),
    ],
)
def test_rank(
    file_name: str, metadata: dict[str, Any], rank: int | None, source: str, tmp_path: Path
) -> None:
    raw = json.dumps(metadata | {"traceEvents": []}).encode()
    (tmp_path / file_name).write_bytes(raw)
    _, facts = both(tmp_path / file_name, tmp_path / "out")
    assert (facts["rank"], facts["rank_source"]) == (rank, source)


@pytest.mark.parametrize(
    ("metadata", "runtime", "vendor"),
    [
        ({}, None, "unknown"),
        ({}, "cudaLaunchKernel", "nvidia"),
        ({}, "cuLaunchKernelEx", "nvidia"),
        ({}, "cursor", "unknown"),
        ({}, "hipLaunchKernel", "amd"),
        ({"roctracer_version": 4.1}, None, "amd"),
        ({"cupti_version": 24}, None, "nvidia"),
        ({"deviceProperties": [{"name": "AMD Instinct MI300X"}]}, "cudaLaunchKernel", "amd"),
        ({"deviceProperties": [{"name": "", "warpSize": 64}]}, None, "amd"),
        ({"deviceProperties": [{"name": "NVIDIA H800", "warpSize": 32}]}, None, "nvidia"),
        ({"deviceProperties": [{"name": "Toy", "warpSize": 32}]}, None, "unknown"),
        ({"deviceProperties": "none"}, None, "unknown"),
    ],
)
def test_vendor(metadata: dict[str, Any], runtime: str | None, vendor: str, tmp_path: Path) -> None:
    events = [{"cat": "cuda_runtime", "name": runtime}] if runtime else []
    (tmp_path / "t.json").write_text(json.dumps(metadata | {"traceEvents": events}))
    _, facts = both(tmp_path / "t.json", tmp_path / "out")
    assert facts["vendor"] == vendor


def test_facts_from_metadata(tmp_path: Path) -> None:
    metadata = {
        "deviceProperties": [{"name": "B"}, {"name": " "}, {"name": "A "}, {"name": "B"}],
        "with_stack": 1,
        "record_shapes": 0,
        "with_flops": "true",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": "1700000000000000000",
        "WARNING": "one line",
        "ERROR": ["bad", 5],
        "not a number": float("nan"),
        "half": "\ud800",
    }
    events = [
        {"ph": "M", "ts": 1},
        {"ph": "i", "ts": 2},
        {"ph": "X", "ts": 3, "dur": 4.5, "cat": "kernel", "args": {"device": 1}},
        {"ph": "X", "cat": "gpu_memset", "args": {"device": 1}},
        {"ph": "i", "ts": 100},
    ]
    (tmp_path / "t.json").write_text(json.dumps(metadata | {"traceEvents": events}))
    flat = flattened(tmp_path / "t.json", tmp_path / "out")
    facts = flat.facts
    assert flat.kinds == ["bare_constant", "lone_surrogate"]
    assert facts["gpu"] == "B, A"
    flags = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
    assert [facts[flag] for flag in flags] == [True, False, None, True, None]
    assert (facts["display_time_unit"], facts["base_time_ns"]) == ("ms", 1700000000000000000)
    lines = ["one line", "bad", "5", "1 device events have no time"]
    assert json.loads(facts["warnings"])[:4] == lines
    assert (facts["min_ts_ns"], facts["max_end_ns"], facts["n_devices"]) == (2000, 7500, 1)
    kept = json.loads(facts["metadata"])
    assert (kept["not a number"], kept["half"]) == (None, "\N{REPLACEMENT CHARACTER}")
    assert (facts["trace_id"], facts["name"], facts["complete"]) == (
        "0123456789ab",
        "a trace",
        True,
    )
