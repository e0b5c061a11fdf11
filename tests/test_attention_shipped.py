"""Attention of real traces: figures that were checked by hand or by another tool, and findings.

`pytest --update-golden tests/test_attention_shipped.py` writes the findings anew; read their diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED

from trace_sql.attention_findings import findings_text
from trace_sql.attention_metrics import attention_metrics, metrics_text
from trace_sql.database import Database
from trace_sql.findings_check import check
from trace_sql.findings_metrics import read_metrics
from trace_sql.store import Settings, Store

GOLDEN = Path(__file__).parent / "golden_findings"
CAPTURES = {"sglang_qwen3_8b_decode_mi300x": "sglang_qwen3_8b_graph_capture_bs32_rank0"}
CONFIGS = {"vllm_gpt_oss_20b_decode_mi300x": "gpt-oss-20b"}
LATE = {"hf_qwen1_5_0_5b_h100"}
"""Traces with kernels that were launched before them: these count here, and not in that tool."""
TRACES = (
    "deepseek_train_h800",
    "hf_bert_small_h100",
    "hf_bert_small_mi300x",
    "hf_qwen1_5_0_5b_h100",
    "hf_vit_nsfw_h100",
    "sglang_qwen3_8b_decode_mi300x",
    "torch_compile_triton",
    "train_mi250",
    "vllm_gpt_oss_120b_prefill_b200",
    "vllm_gpt_oss_20b_decode_mi300x",
)

pytestmark = pytest.mark.skipif(
    not (SHARED / "traces").is_dir(), reason="the traces of ../shared are not here"
)

_known: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


def metrics_of(store: Store, name: str) -> dict[str, Any]:
    """Return the metrics of a shipped trace, with its config or capture where there is one."""
    if name not in _known:
        _known[name] = _metrics(store, name)
    return _known[name]


def _metrics(store: Store, name: str) -> dict[str, Any]:
    capture = None
    if name in CAPTURES:
        capture = store.ingest(SHARED / "traces" / f"{CAPTURES[name]}.json.gz", Settings()).trace_id
    config = None
    if name in CONFIGS:
        path = SHARED / "facts" / "models" / "configs" / f"{CONFIGS[name]}.json"
        config = json.loads(path.read_text(encoding="utf-8"))
    settings = Settings(config=config, capture=capture)
    trace_id = store.ingest(SHARED / "traces" / f"{name}.json.gz", settings).trace_id
    with Database(store, {trace_id: store.settings(trace_id)}) as db:
        return attention_metrics(db, trace_id)


@pytest.mark.parametrize("name", TRACES)
def test_findings_of_shipped_traces(
    name: str, store: Store, request: pytest.FixtureRequest
) -> None:
    metrics = metrics_of(store, name)
    text = findings_text(metrics)
    validation = check(text, read_metrics(metrics_text(metrics), "metrics.json"))
    assert [f"{fault.line} {fault.rule}: {fault.text}" for fault in validation.faults] == []
    path = GOLDEN / f"{name}.md"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), "make it with --update-golden"
    assert text == path.read_text(encoding="utf-8")


def test_the_golden_findings_are_those_of_the_traces() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(TRACES)


@pytest.mark.parametrize("name", sorted({*TRACES} - LATE))
def test_wall_busy_and_kernel_times_are_those_of_another_tool(
    name: str, store: Store, oracle: list[dict[str, Any]]
) -> None:
    rows = [
        row
        for row in oracle
        if row["trace"] == f"traces/{name}.json.gz" and row["level"] == "unified_perf_summary"
    ]
    if not rows:
        pytest.skip("no other reading of this trace")
    metrics = metrics_of(store, name)
    for row in rows:
        usage = metrics["gpu_utilization"]
        assert usage["total_time_ms"] == pytest.approx(row["gpu_total_time_ms"], abs=2e-3)
        assert usage["busy_time_ms"] == pytest.approx(row["gpu_busy_time_ms"], abs=2e-3)
        same = [op for op in metrics["operations"] if op["name"] == row["op"]]
        if same:
            assert sum(op["count"] for op in same) == row["count"]
            total = sum(op["time_ms"] for op in same)
            assert total == pytest.approx(row["kernel_time_sum_us"] / 1e3, abs=1e-3)


def test_full_and_sliding_layers_of_a_decode_step_are_apart(store: Store) -> None:
    metrics = metrics_of(store, "vllm_gpt_oss_20b_decode_mi300x")
    full, sliding = metrics["operations"][:2]
    assert [op["perf_params"]["layers"] for op in (full, sliding)] == ["1,3,..,23", "0,2,..,22"]
    assert full["efficiency"]["efficiency_percent"] == pytest.approx(45.62, abs=0.05)
    assert sliding["efficiency"]["efficiency_percent"] == pytest.approx(12.48, abs=0.05)
    roofline = sum(op["analysis"]["roofline_us"] for op in (full, sliding))
    together = 100 * roofline / 1e3 / (full["time_ms"] + sliding["time_ms"])
    assert together == pytest.approx(38.21, abs=0.1)


def test_no_efficiency_of_a_shipped_trace_is_over_its_roofline(store: Store) -> None:
    for name in TRACES:
        for op in metrics_of(store, name)["operations"]:
            assert (op["efficiency"]["efficiency_percent"] or 0) <= 100, (name, op["name"])
