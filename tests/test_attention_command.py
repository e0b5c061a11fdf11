"""`trace-sql attention`: shipped traces against figures derived by hand, comparison, refusals."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CONFIG, TRACE, answer, command, refused
from conftest import SHARED

from fixtures import Scenario, kind, make, serving, write
from trace_sql.errors import ExitCode

TRACES = SHARED / "traces"
CONFIGS = SHARED / "facts" / "models" / "configs"
NO_TRACES = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not beside us")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attention")


def operations(store: Path, name: str, *options: object) -> list[dict[str, Any]]:
    path = TRACES / f"{name}.json.gz"
    shown = answer(command(store, "attention", path, *options, "--format", "json"))
    found: list[dict[str, Any]] = shown["operations"]
    return found


DENSE = {
    "R002": "hf_vit_nsfw_h100",
    "R004": "hf_bert_small_h100",
    "R007": "hf_bert_small_mi300x",
    "R008": "torch_compile_triton",
}


@NO_TRACES
@pytest.mark.parametrize("row", DENSE)
def test_dense_calls_have_the_work_and_the_share_of_roofline_that_was_derived(
    store: Path, row: str, oracle: list[dict[str, Any]]
) -> None:
    (known,) = (one for one in oracle if one["id"] == row)
    options = ["--peak", "measured"] if row == "R008" else []
    (found,) = operations(store, DENSE[row], *options)
    assert found["operator"] == known["op"]
    assert found["n_calls"] == known["count"]
    assert found["flops"] / found["n_calls"] == pytest.approx(known["GFLOPS"] * 1e9, rel=1e-9)
    assert found["bytes"] / found["n_calls"] == pytest.approx(
        known["data_moved_MB"] * 2**20, rel=1e-9
    )
    assert found["sum_us"] == pytest.approx(known["kernel_time_sum_us"], rel=1e-5)
    # The reference rounds its times to doubles of microseconds since 1970.
    assert found["mean_efficiency_pct"] == pytest.approx(known["pct_roofline_mean"], rel=2e-5)
    assert found["bound"] == known["roofline_bound"].split("_")[0].lower()


@NO_TRACES
def test_causal_calls_count_the_diagonal(store: Path) -> None:
    rated, *rest = operations(store, "hf_qwen1_5_0_5b_h100")
    n = 559
    pairs = sum(row + 1 for row in range(n))
    assert rated["flops"] == 24 * 16 * 16 * pairs * 2 * (64 + 64)
    assert rated["bytes"] == 24 * 4 * 16 * n * 16 * 64 * 2
    (unknown,) = rest
    assert unknown["efficiency_pct"] is None
    assert "before the trace begins" in unknown["problem"]


@NO_TRACES
def test_decoding_tells_layers_with_a_window_from_full_ones(store: Path) -> None:
    options = ("--config", CONFIGS / "gpt-oss-20b.json")
    found = operations(store, "vllm_gpt_oss_20b_decode_mi300x", *options)
    full, window = [one for one in found if one["implementation"] == "paged"]
    assert (full["mask"], full["layers"], full["n_calls"]) == ("causal_br", "1,3,..,23", 12)
    assert (window["mask"], window["window_size"], window["n_calls"]) == ("window", 128, 12)
    # 32 requests, 55086 keys in all, 64 and 8 heads of 64, two bytes each.
    tokens = 32 * (2 * 64 + 2 * 8) * 64 * 2
    assert full["bytes"] == 12 * (tokens + (55086 - 32) * 2 * 8 * 64 * 2)
    assert window["bytes"] == 12 * (tokens + 32 * (128 - 1) * 2 * 8 * 64 * 2)
    assert full["efficiency_pct"] == pytest.approx(45.62, abs=0.01)
    assert window["efficiency_pct"] == pytest.approx(12.48, abs=0.01)
    both = (full["roofline_us"] + window["roofline_us"]) / (full["sum_us"] + window["sum_us"])
    assert 100 * both == pytest.approx(38.21, abs=1)
    assert not any(one["anomaly"] for one in found)


@NO_TRACES
def test_a_replayed_graph_gets_its_shapes_from_the_capture(
    store: Path, oracle: list[dict[str, Any]]
) -> None:
    capture = TRACES / "sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz"
    found = operations(store, "sglang_qwen3_8b_decode_mi300x", "--capture", capture)
    paged = found[0]
    (known,) = (one for one in oracle if one["id"] == "R013")
    assert (paged["operator"], paged["n_calls"]) == (known["op"], known["count"])
    assert paged["evidence"] == "capture"
    assert paged["flops"] == 36 * 537149440
    assert paged["bytes"] == 36 * 134811648
    assert paged["mean_efficiency_pct"] == pytest.approx(known["pct_roofline_mean"], rel=2e-5)
    # The device idles for most of the wall time, so shares of it would hide what attention costs.
    assert paged["pct_of_busy"] > 20 > 1 > paged["pct_of_wall"]


@NO_TRACES
def test_two_traces_differ_by_their_gpus_and_by_their_kernels(store: Path) -> None:
    one, other = (TRACES / f"hf_bert_small_{gpu}.json.gz" for gpu in ("mi300x", "h100"))
    shown = answer(command(store, "attention", one, "--baseline", other, "--format", "json"))
    (match,) = shown["matches"]
    assert match["time_pct"] == pytest.approx(32.91, abs=0.01)
    assert match["floor_ratio"] == pytest.approx(5.3 / 3.35, rel=1e-6)
    assert match["time_pct"] == pytest.approx(100 * match["floor_ratio"] * match["quality_ratio"])


@NO_TRACES
def test_a_trace_without_attention_says_so(store: Path) -> None:
    result = command(store, "attention", TRACES / "train_mi250.json.gz")
    assert result.exit_code == ExitCode.OK
    assert "no attention found" in result.stderr


def test_an_unknown_gpu_costs_the_efficiencies_alone(store: Path) -> None:
    result = command(store, "attention", TRACE, "--config", CONFIG, "--format", "json")
    found = answer(result)["operations"]
    assert found
    assert {one["efficiency_pct"] for one in found} == {None}
    assert "--gpu NAME" in result.stderr
    rated = answer(
        command(
            store, "attention", TRACE, "--config", CONFIG, "--gpu", "B200 SXM", "--format", "json"
        )
    )
    assert any(one["efficiency_pct"] for one in rated["operations"])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "give a TRACE"),
        ((TRACE, "--validate", CONFIG), "give only --metrics"),
        ((TRACE, "--baseline", TRACE), "is the same trace"),
        ((TRACE, "--gpu", "H1000"), "H1000"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    store: Path, words: tuple[object, ...], part: str
) -> None:
    refused(command(store, "attention", *words), ExitCode.USAGE, part)


def test_the_validator_is_a_command(store: Path, tmp_path: Path) -> None:
    empty = tmp_path / "none.md"
    empty.write_text("No SDPA operations found in trace\n", encoding="utf-8")
    assert command(store, "attention", "--validate", empty).exit_code == ExitCode.OK
    wrong = tmp_path / "wrong.md"
    wrong.write_text("## Detailed Analysis\n\n## Recommendations\n", encoding="utf-8")
    result = command(store, "attention", "--validate", wrong)
    assert result.exit_code == ExitCode.FAILED
    assert re.search(r"\d+ faults?;", result.stderr)


@NO_TRACES
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hf_vit_nsfw_h100", ()),
        ("hf_qwen1_5_0_5b_h100", ()),
        ("torch_compile_triton", ()),
        ("deepseek_train_h800", ()),
        ("train_mi250", ()),
        ("vllm_gpt_oss_20b_decode_mi300x", ("--config", CONFIGS / "gpt-oss-20b.json")),
        ("hf_bert_small_mi300x", ("--baseline", TRACES / "hf_bert_small_h100.json.gz")),
    ],
)
def test_findings_of_a_trace_are_valid(
    store: Path, tmp_path: Path, name: str, options: tuple[object, ...]
) -> None:
    files = ("--findings", tmp_path / "findings.md", "--metrics", tmp_path / "metrics.json")
    written = command(store, "attention", TRACES / f"{name}.json.gz", *options, *files)
    assert written.exit_code == ExitCode.OK, written.stderr
    checked = command(store, "attention", "--validate", files[1], *files[2:])
    assert checked.exit_code == ExitCode.OK, checked.stdout


def test_many_passes_are_left_to_formats_for_programs(store: Path, tmp_path: Path) -> None:
    dense = kind("sglang_llama_nvidia")
    made = make(dense.model_config(layers=2), dense, Scenario(passes=serving(1, 1, 23)))
    path = write(made, tmp_path / "long.json")
    printed = command(store, "attention", path).stdout
    assert "of 25 passes" in printed
    assert len(re.findall(r"^pass +\d+ ", printed, re.MULTILINE)) < 25
    shares = answer(command(store, "attention", path, "--format", "json"))["shares"]
    assert [row["scope"] for row in shares].count("pass") == 25


@pytest.mark.parametrize(
    ("text", "other", "code"),
    [
        ('{"traceEvents": 5}', (), ExitCode.BAD_INPUT),
        (None, (), ExitCode.USAGE),
        (TRACE.read_bytes(), ("--baseline", "absent.json"), ExitCode.USAGE),
    ],
)
def test_an_analysis_that_fails_leaves_files_that_say_so_and_no_finding(
    tmp_path: Path, text: str | bytes | None, other: tuple[str, ...], code: ExitCode
) -> None:
    trace = tmp_path / "one.json"
    if text is not None:
        trace.write_bytes(text.encode() if isinstance(text, str) else text)
    findings, metrics = tmp_path / "findings.md", tmp_path / "metrics.json"
    findings.write_text("# Findings of an older run\n", encoding="utf-8")
    files = ("--findings", findings, "--metrics", metrics)
    result = command(tmp_path / "store", "attention", trace, *other, *files)
    assert result.exit_code == code
    said = findings.read_text(encoding="utf-8")
    assert "Status: ERROR" in said.splitlines()
    assert "###" not in said
    content = json.loads(metrics.read_text(encoding="utf-8"))
    assert content["status"] == "ERROR"
    assert content["error"] in result.stderr
    checked = command(tmp_path / "store", "attention", "--validate", findings, *files[2:])
    assert checked.exit_code == ExitCode.OK


def test_a_peak_that_nobody_measured_is_the_datasheet_s(store: Path, tmp_path: Path) -> None:
    findings = tmp_path / "findings.md"
    options = ["--config", CONFIG, "--peak", "measured", "--findings", findings]
    told = {}
    for gpu in ("H100 SXM", "T4"):
        result = command(store, "attention", TRACE, "--gpu", gpu, *options)
        told[gpu] = (result.stderr, findings.read_text(encoding="utf-8"))
    assert ", measured peaks" in told["H100 SXM"][0]
    assert "as large matrix products reach it" in told["H100 SXM"][1]
    assert ", datasheet peaks" in told["T4"][0]
    assert "as large matrix products reach it" not in told["T4"][1]
    assert "the datasheet peaks of T4" in told["T4"][1]


def test_a_store_that_cannot_be_written_answers_for_any_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(gpu: str) -> list[dict[str, Any]]:
        result = command(tmp_path, "attention", TRACE, "--gpu", gpu, "--format", "json")
        operations: list[dict[str, Any]] = answer(result)["operations"]
        return operations

    assert command(tmp_path, "ingest", TRACE, "--config", CONFIG).exit_code == ExitCode.OK
    shown("H100 SXM")
    monkeypatch.setattr(os, "access", lambda _, mode, **__: mode != os.W_OK)
    files = set(tmp_path.rglob("*"))
    given = shown("MI300X")
    asked = command(tmp_path, "sql", TRACE, "select distinct precision from attention_ops")
    assert asked.exit_code == ExitCode.OK
    assert set(tmp_path.rglob("*")) == files
    monkeypatch.undo()
    for one, other in zip(given, shown("MI300X"), strict=True):
        exact = {key for key, value in one.items() if not isinstance(value, float)}
        assert {key: one[key] for key in exact} == {key: other[key] for key in exact}
        assert [one[key] for key in one.keys() - exact] == pytest.approx(
            [other[key] for key in one.keys() - exact]
        )


def test_results_are_kept_for_each_choice_of_a_gpu(tmp_path: Path) -> None:
    store, own = tmp_path / "store", tmp_path / "gpu.json"

    def bandwidth(gpu: object) -> set[float]:
        options = ["--config", CONFIG, "--gpu", gpu, "--format", "json"]
        operations = answer(command(store, "attention", TRACE, *options))["operations"]
        return {one["hbm_tb_s"] for one in operations}

    def files(view: str) -> set[Path]:
        return set(store.rglob(f"{view}.parquet"))

    assert bandwidth("H100 SXM") == {3.35}
    (split,), first = files("activity_layers"), files("attention_ops")
    written = split.stat().st_mtime_ns
    assert len(first) == 1
    for value in (2.0, 4.0):
        # Of one name, so that only the content tells them apart.
        own.write_text(json.dumps({"name": "mine", "hbm_tb_s": value, "bf16": 500}))
        assert bandwidth(own) == {value}
    assert bandwidth("H100 SXM") == {3.35}
    assert len(files("attention_ops")) == 3
    assert files("activity_layers") == {split}
    assert split.stat().st_mtime_ns == written
