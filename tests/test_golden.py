"""Real traces, checked by hand event by event: passes, layers and regions hold exactly.

Each truth is met with and without a config, with the python frames and by anchors alone, and
wrong settings are refused with the counts that contradict them.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED, Analyse, Analysed, Shared

TRUTHS = {
    "sglang_qwen3_8b_decode_mi300x": "Qwen3-8B",
    "vllm_gpt_oss_20b_decode_mi300x": "gpt-oss-20b",
    "vllm_gpt_oss_120b_prefill_b200": "gpt-oss-120b",
    "hf_qwen1_5_0_5b_h100": "Qwen1.5-0.5B-Chat",
}
CAPTURE = "traces/sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz"
HF = "hf_qwen1_5_0_5b_h100"
FRAMED = ("vllm_gpt_oss_120b_prefill_b200", HF)
OTHERS = (
    "hf_bert_small_h100",
    "hf_bert_small_mi300x",
    "hf_vit_nsfw_h100",
    "torch_compile_triton",
    "deepseek_train_h800",
    "train_mi250",
    "train_nccl",
    "train_ns_resolution_rank0",
)


def trace(shared: Shared, name: str) -> Path:
    return shared(f"traces/{name}.json.gz")


def truth(shared: Shared, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared(f"golden/{name}.json").read_text())
    return found


def config(shared: Shared, name: str) -> dict[str, Any]:
    path = shared(f"facts/models/configs/{TRUTHS[name]}.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@cache
def content(path: Path) -> dict[str, Any]:
    """Return the file's JSON, with numbers as their digits say."""
    with gzip.open(path) as file:
        found: dict[str, Any] = json.loads(file.read(), parse_float=Decimal)
    return found


@pytest.fixture(scope="session")
def frameless(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return a file's copy without python frames: only anchors are left to split by."""
    folder = tmp_path_factory.mktemp("frameless")

    @cache
    def strip(path: Path) -> Path:
        found = content(path)
        events = [e for e in found["traceEvents"] if e.get("cat") != "python_function"]
        copy = folder / path.name.removesuffix(".gz")
        copy.write_text(json.dumps({**found, "traceEvents": events}, default=str))
        return copy

    return strip


def region(role: str) -> str:
    """Return the region that a truth's role of a kernel outside layers stands for."""
    if role.startswith("outside"):
        return "outside"
    begins = "embedding" in role or "before layer 0" in role or "prologue" in role
    return "prologue" if begins else "epilogue"


def ns(microseconds: float) -> int:
    """Return nanoseconds; a double holds these times to 0.25 ns only, so round."""
    return round(Decimal(repr(microseconds)) * 1000)


def assert_holds(found: Analysed, told: dict[str, Any]) -> None:
    """Compare every pass, layer, boundary and kernel outside layers with the truth."""
    assert found.verdict["verdict"] == "split", found.verdict["message"]
    acts = found.activities
    assert len(acts) == told["n_gpu_events"]
    index = {a["event_id"]: a["gpu_index"] for a in acts}
    passes = found.passes
    assert len(passes) == told["n_passes"]
    assert sum(p["complete"] for p in passes) == told.get("n_complete_passes", told["n_passes"])
    layers: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for act in acts:
        if act["region"] == "layer":
            layers.setdefault((act["pass_no"], act["layer_no"]), []).append(act)
    complete = {
        (row["pass_no"], row["layer_no"]): row["complete"] for row in found.rows("from layers")
    }
    places = set()
    for one, row in zip(told["passes"], passes, strict=True):
        number = one["pass_index"]
        assert row["pass_no"] == number
        assert row["complete"] == one["complete"]
        assert row["status"] == ("complete" if one["complete"] else "cut_start")
        assert index[row["first_event_id"]] == one["first_gpu_index"]
        assert index[row["last_event_id"]] == one["last_gpu_index"]
        near = pytest.approx
        assert row["start_ns"] == near(ns(one["start_ts"]), abs=1)
        assert row["end_ns"] == near(ns(one["end_ts"]), abs=1)
        assert row["layers_start_ns"] == near(ns(one["layers_start_ts"]), abs=1)
        assert row["layers_end_ns"] == near(ns(one["layers_end_ts"]), abs=1)
        for layer in one["layers"]:
            key = (number, layer["layer"])
            places.add(key)
            members = layers[key]
            assert members[0]["gpu_index"] == layer["first_gpu_index"]
            assert members[-1]["gpu_index"] == layer["last_gpu_index"]
            assert len(members) == layer["n_kernels"]
            assert members[0]["start_ns"] == near(ns(layer["start_ts"]), abs=1)
            assert max(a["end_ns"] for a in members) == near(ns(layer["end_ts"]), abs=1)
            assert complete[key] == layer.get("complete", True)
            if middle := layer.get("mid_boundary_gpu_index"):
                ffn = [a["gpu_index"] for a in members if a["slot"] == "ffn"]
                assert ffn[0] == middle
            for kernel in layer.get("kernels", ()):
                act = acts[kernel["gpu_index"]]
                assert act["event_id"] == kernel["raw_event_index"]
                assert (act["pass_no"], act["layer_no"]) == key
    assert layers.keys() == places
    for kernel in told["outside_layers"]:
        act = acts[kernel["gpu_index"]]
        assert act["event_id"] == kernel["raw_event_index"]
        assert act["region"] == region(kernel["role"]), kernel["role"]
        assert (act["layer_no"], act["slot"]) == (None, None)
    outside = {kernel["gpu_index"] for kernel in told["outside_layers"]}
    assert outside == {a["gpu_index"] for a in acts if a["region"] != "layer"}


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("configured", [False, True], ids=["no config", "config"])
def test_the_truth_holds(name: str, configured: bool, shared: Shared, analyse: Analyse) -> None:
    told = truth(shared, name)
    settings = {"config": config(shared, name)} if configured else {}
    found = analyse(trace(shared, name), **settings)
    assert_holds(found, told)
    expected = "config" if configured else "frames" if name in FRAMED else "anchors"
    assert found.verdict["n_layers_source"] == expected


@pytest.mark.parametrize("name", TRUTHS)
def test_anchors_alone_tell(
    name: str, shared: Shared, analyse: Analyse, frameless: Callable[[Path], Path]
) -> None:
    path = frameless(trace(shared, name))
    # Of events that are left out the truth's raw indices do not tell; order by time does.
    original = analyse(trace(shared, name))
    wanted = [(a["pass_no"], a["layer_no"], a["slot"], a["region"]) for a in original.activities]
    # Nothing follows the final norm in this trace, so that its anchors prove no layer count.
    told = {"num_layers": 24} if name == HF else {}
    found = analyse(path, **told)
    assert found.verdict["verdict"] == "split"
    got = [(a["pass_no"], a["layer_no"], a["slot"], a["region"]) for a in found.activities]
    assert got == wanted
    evidence = " ".join(row["evidence"] for row in found.passes)
    assert "frames" not in evidence


def test_a_pass_without_a_proven_end_asks_for_the_layer_count(
    shared: Shared, analyse: Analyse, frameless: Callable[[Path], Path]
) -> None:
    found = analyse(frameless(trace(shared, HF)))
    assert found.verdict["verdict"] == "refused"
    assert found.verdict["message"] == (
        "70 hits of transformers_eager_rmsnorm, but no whole pass proves a layer count; "
        "give --num-layers or --config"
    )
    assert {a["region"] for a in found.activities} == {None}


@pytest.mark.parametrize("name", FRAMED)
def test_the_frame_that_launched_a_kernel_names_its_layer(
    name: str, shared: Shared, analyse: Analyse
) -> None:
    """Attribution by launch, read from the file anew, agrees kernel by kernel."""
    class_ = {"vllm_gpt_oss_120b_prefill_b200": "TransformerBlock", HF: "Qwen2DecoderLayer"}[name]
    events = content(trace(shared, name))["traceEvents"]
    frames: dict[Any, list[tuple[Any, Any, int]]] = {}
    launches = {}
    for event in events:
        if event.get("name", "").startswith(f"nn.Module: {class_}_"):
            layer = int(event["name"].rsplit("_", 1)[1])
            thread = (event["pid"], event["tid"])
            frames.setdefault(thread, []).append((event["ts"], event["ts"] + event["dur"], layer))
        elif event.get("cat") in ("cuda_runtime", "cuda_driver"):
            launches[event["args"].get("correlation")] = event
    for spans in frames.values():
        spans.sort()
    found = analyse(trace(shared, name))
    n_framed = 0
    for act in found.activities:
        event = events[act["event_id"]]
        launch = launches.get(event["args"]["correlation"])
        if launch is None:
            assert act["pass_no"] != found.verdict["n_passes"] - 1
            continue
        spans = frames[launch["pid"], launch["tid"]]
        position = bisect_right(spans, launch["ts"], key=lambda span: span[0]) - 1
        inside = position >= 0 and launch["ts"] < spans[position][1]
        n_framed += inside
        assert act["layer_no"] == (spans[position][2] if inside else None)
    assert n_framed > 800


def test_a_capture_trace_gives_a_graph_replay_its_frames(shared: Shared, analyse: Analyse) -> None:
    capture = analyse(shared(CAPTURE)).trace_id
    name = "sglang_qwen3_8b_decode_mi300x"
    found = analyse(trace(shared, name), capture=capture)
    assert_holds(found, truth(shared, name))
    (row,) = found.passes
    assert "frames (capture) agree for 540/540" in row["evidence"]


@pytest.mark.parametrize(
    ("name", "layers", "reason"),
    [
        (
            "sglang_qwen3_8b_decode_mi300x",
            35,
            "72 anchors where 2*N with N=35 gives 70 (residue 2); they would fit N=36",
        ),
        (
            "sglang_qwen3_8b_decode_mi300x",
            24,
            "72 anchors where 2*N with N=24 gives 48 (residue 24); they would fit N=36",
        ),
        (
            "sglang_qwen3_8b_decode_mi300x",
            72,
            "72 anchors where 2*N with N=72 gives 144 (residue -72); they would fit N=36",
        ),
        (
            "vllm_gpt_oss_20b_decode_mi300x",
            36,
            "48 anchors where 2*N with N=36 gives 72 (residue -24); they would fit N=24",
        ),
        (
            "vllm_gpt_oss_120b_prefill_b200",
            24,
            "72 anchors where 2*N with N=24 gives 48 (residue 24); they would fit N=36",
        ),
        (HF, 20, "49 anchors where 2*N+1 with N=20 gives 41 (residue 8); they would fit N=24"),
        # Cut at the end it could be; but the frames show that layer 24 is the final norm.
        (HF, 35, "layer 24 was launched outside every layer module; the frames show 24 layers"),
    ],
)
def test_a_wrong_layer_count_is_refused(
    name: str, layers: int, reason: str, shared: Shared, analyse: Analyse
) -> None:
    found = analyse(trace(shared, name), num_layers=layers)
    assert found.verdict["verdict"] == "refused"
    assert reason in found.verdict["message"]
    assert {row["status"] for row in found.passes} == {"refused"}
    assert not [a for a in found.activities if a["layer_no"] is not None]


@pytest.mark.parametrize(
    ("name", "kernel", "reason"),
    [
        # The shifted split: 72 = 2 * 36, but hit 0 is the middle of layer 0.
        (
            "vllm_gpt_oss_120b_prefill_b200",
            "vllm::fused_add_rms_norm_kernel",
            "layer 0: no attention in slot attn (0 of 36 attention slots hold it)",
        ),
        # The substring is in q and k norms too.
        (
            "sglang_qwen3_8b_decode_mi300x",
            "add_rmsnorm_quant_kernel",
            "145 anchors where 2*N with N=36 gives 72 (residue 73)",
        ),
    ],
)
def test_a_wrong_anchor_is_refused(
    name: str, kernel: str, reason: str, shared: Shared, analyse: Analyse
) -> None:
    path = trace(shared, name)
    for settings in ({"num_layers": 36}, {"config": config(shared, name)}):
        found = analyse(path, anchor_kernel=kernel, blocks_per_layer=2, **settings)
        assert found.verdict["verdict"] == "refused"
        assert reason in found.verdict["message"]
    found = analyse(path, anchor_kernel=kernel, blocks_per_layer=2)
    assert found.verdict["verdict"] == "refused"


@pytest.mark.parametrize("name", OTHERS)
def test_a_trace_without_known_boundaries_is_refused(
    name: str, shared: Shared, analyse: Analyse
) -> None:
    found = analyse(trace(shared, name))
    assert found.verdict["verdict"] == "refused"
    message = found.verdict["message"]
    if name == "torch_compile_triton":
        # Two compiled norms, and no pass around them.
        assert "no whole pass proves a layer count" in message
    else:
        assert message.startswith("no boundary kernel of profile generic among ")
        assert "--anchor-kernel" in message
    assert {(a["pass_no"], a["layer_no"], a["region"]) for a in found.activities} == {(None,) * 3}


def test_shared_has_no_truth_that_is_not_checked_here(shared: Shared) -> None:
    shared("golden")
    assert {path.stem for path in (SHARED / "golden").glob("*.json")} == TRUTHS.keys()
