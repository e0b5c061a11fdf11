"""Peaks and rooflines of attention calls, against arithmetic done by hand."""

from __future__ import annotations

import math

import pytest
from conftest import Shared
from rooflines_made import Row, roofline, rooflines

from trace_sql.database import Database
from trace_sql.hardware import choose_gpu
from trace_sql.store import Settings, Store

# Rooflines.


@pytest.mark.parametrize(
    ("gpu", "peak", "call", "expected"),
    [
        # ViT on H100: 4 x 12 heads of 64, 197 tokens, dense.
        (
            "H100 SXM",
            "datasheet",
            {"flops": 476884992, "bytes": 4841472, "busy_ns": 10237},
            {"bound": "memory", "roofline_us": 4841472 / 3.35e6, "t_compute_us": 0.481994},
        ),
        # SGLang decode on MI300X: 32 requests, 32785 keys, 8 key heads of 128.
        (
            "MI300X",
            "datasheet",
            {"flops": 537149440, "bytes": 134811648, "busy_ns": 59107, "implementation": "paged"},
            {"bound": "memory", "roofline_us": 25.43616, "efficiency_pct": 2543.616 / 59.107},
        ),
        # gpt-oss decode on MI300X, full and windowed layers.
        (
            "MI300X",
            "datasheet",
            {"flops": 1, "bytes": 113340416, "busy_ns": 46881},
            {"bound": "memory", "roofline_us": 21.38498, "efficiency_pct": 2138.498 / 46.881},
        ),
        (
            "MI300X",
            "datasheet",
            {"flops": 1, "bytes": 8912896, "busy_ns": 13482},
            {"bound": "memory", "roofline_us": 1.681678, "efficiency_pct": 168.1678 / 13.482},
        ),
        # 8 x 16 heads of 128, 4096 tokens, dense: by what GEMMs reach, and as printed.
        (
            "MI300X",
            "measured",
            {"flops": 1099511627776, "bytes": 536870912, "busy_ns": 3683509},
            {"bound": "compute", "roofline_us": 1552.982525, "efficiency_pct": 42.16041},
        ),
        (
            "MI300X",
            "datasheet",
            {"flops": 1099511627776, "bytes": 536870912, "busy_ns": 3683509},
            {
                "bound": "compute",
                "roofline_us": 840.99099,
                "efficiency_pct": 22.83125,
                "measured_efficiency_pct": 42.16041,
                "flops_per_byte": 2048,
                "tflops": 298.49571,
                "tb_s": 0.14574986,
            },
        ),
    ],
)
def test_rooflines_are_those_of_hand_checks(gpu: str, peak: str, call: Row, expected: Row) -> None:
    (row,) = rooflines(call, gpu=gpu, peak=peak)
    numbers = {key: one for key, one in expected.items() if key != "bound"}
    assert {key: row[key] for key in numbers} == pytest.approx(numbers, rel=2e-6)
    assert row["bound"] == expected["bound"]
    assert row["peak_kind"] == peak
    assert row["problem"] is None


def test_the_bound_is_the_longer_time() -> None:
    # 989.4 TFLOPS and 3.35 TB/s meet at 295.34 operations a byte.
    calls = [{"flops": ratio * 1e6, "bytes": 1e6, "busy_ns": 1000} for ratio in (295.3, 295.4)]
    below, above = rooflines(*calls)
    assert (below["bound"], above["bound"]) == ("memory", "compute")
    assert below["roofline_us"] == below["t_memory_us"] > below["t_compute_us"]
    assert above["roofline_us"] == above["t_compute_us"] > above["t_memory_us"]


def test_core_time_has_an_efficiency_of_its_own() -> None:
    row = roofline(flops=1, bytes=3.35e6, busy_ns=4000, core_ns=2000)
    assert row["efficiency_pct"] == pytest.approx(25)
    assert row["core_efficiency_pct"] == pytest.approx(50)


def test_what_only_moves_data_needs_no_type() -> None:
    row = roofline(flops=0, bytes=3.35e6, busy_ns=2000, q_dtype=None, implementation="cache")
    assert (row["bound"], row["roofline_us"], row["problem"]) == ("memory", pytest.approx(1), None)
    assert row["efficiency_pct"] == pytest.approx(50)
    assert row["flops_per_byte"] == 0


# Precisions.


@pytest.mark.parametrize(
    ("gpu", "types", "precision", "peak"),
    [
        ("H100 SXM", {"q_dtype": "fp16"}, "fp16", 989.4),
        ("H100 SXM", {"q_dtype": "fp8_e4m3", "kv_dtype": "fp8_e4m3"}, "fp8", 1978.9),
        ("H100 SXM", {"q_dtype": "fp8_e5m2"}, "fp8", 1978.9),
        # An FP8 cache is widened to the type of the query, and so is a query to that of the cache.
        ("H100 SXM", {"q_dtype": "bf16", "kv_dtype": "fp8_e4m3"}, "bf16", 989.4),
        ("H100 SXM", {"q_dtype": "fp8_e4m3", "kv_dtype": "bf16"}, "bf16", 989.4),
        ("H100 SXM", {"q_dtype": "bf16", "kv_dtype": "int8"}, "bf16", 989.4),
        ("H100 SXM", {"q_dtype": "fp32"}, "fp32", 66.9),
        ("H100 SXM", {"q_dtype": "tf32"}, "tf32", 494.7),
        ("B200 SXM", {"q_dtype": "fp4"}, "fp4", 9000),
        # Two products of equal size at two rates: the harmonic mean.
        (
            "H100 SXM",
            {"q_dtype": "int8", "kv_dtype": "int8", "o_dtype": "bf16", "d_qk": 64, "d_v": 64},
            "int8+bf16",
            2 / (1 / 1978.9 + 1 / 989.4),
        ),
        (
            "H100 SXM",
            {"q_dtype": "int8", "kv_dtype": "fp8_e4m3", "d_qk": 192, "d_v": 64},
            "int8+fp8",
            1978.9,
        ),
        (
            "A100 80GB SXM",
            {"q_dtype": "int8", "kv_dtype": "fp16", "d_qk": 192, "d_v": 64},
            "int8+fp16",
            1 / (0.75 / 624 + 0.25 / 312),
        ),
        # No units for it: the next wider type that has some.
        ("A100 80GB SXM", {"q_dtype": "fp8_e4m3"}, "fp8", 312),
        ("H100 SXM", {"q_dtype": "fp4"}, "fp4", 1978.9),
        ("V100 SXM2", {"q_dtype": "bf16"}, "bf16", 15.7),
    ],
)
def test_the_peak_is_that_of_the_products(
    gpu: str, types: Row, precision: str, peak: float
) -> None:
    row = roofline(gpu, flops=1e12, bytes=1, busy_ns=10**8, **types)
    assert row["precision"] == precision
    assert row["peak_tflops"] == pytest.approx(peak)
    assert row["t_compute_us"] == pytest.approx(1e6 / peak)


def test_fp32_says_that_tf32_was_taken_as_off() -> None:
    note = roofline(flops=1, bytes=1, busy_ns=10, q_dtype="fp32")["peak_note"]
    assert "TF32" in note and "494.7" in note
    assert (
        "TF32" not in roofline("MI210", flops=1, bytes=1, busy_ns=10, q_dtype="fp32")["peak_note"]
    )


def test_a_missing_unit_is_said() -> None:
    row = roofline("A100 40GB", flops=1, bytes=1, busy_ns=10, q_dtype="fp8_e4m3")
    assert "no fp8 units: computed in bf16" in row["peak_note"]
    assert row["peak_status"] == "sourced"


def test_where_no_measured_peak_is_known_the_printed_one_counts_and_says_so() -> None:
    (row,) = rooflines({"flops": 1, "bytes": 1, "busy_ns": 10}, gpu="H100 PCIe", peak="measured")
    assert (row["peak_kind"], row["peak_tflops"]) == ("datasheet", 756.5)
    assert row["measured_efficiency_pct"] is None
    assert "no measured bf16 peak" in row["peak_note"]


# Traces of which others know the numbers.

RIGHT = ("R002", "R003", "R004", "R007", "R008", "R013")
"""Rows whose mask, lengths and types are read as they are: dense, or bound by bytes."""


@pytest.mark.parametrize("row_id", RIGHT)
def test_known_rooflines_of_real_traces(
    row_id: str, shared: Shared, trace_store: Store, oracle: list[Row]
) -> None:
    (row,) = (one for one in oracle if one["id"] == row_id)
    path = shared(row["trace"])
    capture = None
    if row_id == "R013":
        captured = path.with_name("sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz")
        capture = trace_store.ingest(captured).trace_id
    trace_id = trace_store.ingest(path).trace_id
    # The rates that it used are those of GEMMs on AMD, printed ones on NVIDIA.
    hardware = choose_gpu(None, "measured" if "MI300X" in row["arch"] else "datasheet")
    settings = Settings(capture=capture)
    with Database(trace_store, {trace_id: settings}, hardware=hardware) as database:
        found = database.query(
            "select r.roofline_us, r.bytes, r.tb_s, r.efficiency_pct, r.bound, r.problem"
            " from attention_rooflines as r join attention_calls as c using (trace_id, call_no)"
            " where c.operator = ?",
            [row["op"]],
        ).dicts()
    assert len(found) == row["count"]
    for call in found:
        assert call["problem"] is None
        assert call["roofline_us"] == pytest.approx(row["roofline_time_us"], rel=1e-6)
        assert call["bytes"] == pytest.approx(row["data_moved_MB"] * 2**20, rel=1e-6)
        assert call["bound"] == row["roofline_bound"].removesuffix("_BOUND").lower()
    # It read times as doubles, which rounds them.
    for ours, theirs in (("efficiency_pct", "pct_roofline_mean"), ("tb_s", "TB_per_s_mean")):
        mean = sum(call[ours] for call in found) / len(found)
        assert mean == pytest.approx(row[theirs], rel=2e-5)


# What is not known, and what cannot be.


def test_an_unknown_gpu_gives_no_efficiency_and_says_why() -> None:
    row = roofline(None, flops=1e9, bytes=1e6, busy_ns=5000)
    empty = ("gpu", "peak_tflops", "hbm_tb_s", "roofline_us", "bound", "efficiency_pct")
    assert [row[key] for key in (*empty, "floor_us", "floor_kind")] == [None] * 8
    assert row["anomaly"] is False
    assert row["problem"] == "GPU not recognised"
    assert row["tflops"] == pytest.approx(200), "what was reached needs no peak"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"flops": None, "bytes": None, "problem": "no shapes"}, "no shapes"),
        ({"flops": 1e9, "bytes": None, "problem": "no bytes"}, "no bytes"),
        ({"flops": 1e9, "bytes": 1e6, "q_dtype": None}, "types of its tensors are not known"),
        ({"flops": 1e9, "bytes": 1e6, "q_dtype": "int64"}, "no int64 peak of H100 SXM"),
        ({"flops": 1e9, "bytes": 1e6, "busy_ns": 0}, "no time"),
    ],
)
def test_what_is_missing_is_named(call: Row, problem: str) -> None:
    row = roofline(**{"busy_ns": 5000, **call})
    assert row["efficiency_pct"] is None
    assert problem in row["problem"]
    assert row["anomaly"] is False


def test_beyond_the_peak_is_an_anomaly_by_name() -> None:
    slow, near, beyond = rooflines(
        *({"flops": 989.4e6, "bytes": 1, "busy_ns": busy} for busy in (1000, 910, 908))
    )
    assert [row["anomaly"] for row in (slow, near, beyond)] == [False, False, True]
    assert near["efficiency_pct"] > 109
    assert near["problem"] is None
    assert "over 110 % of the datasheet peak" in beyond["problem"]


def test_beyond_one_peak_but_not_the_other_is_said() -> None:
    # RTX 5090: 209.5 as printed, 254 as measured.
    row = roofline("RTX 5090", flops=209.5e6, bytes=1, busy_ns=850)
    assert row["anomaly"] is True
    assert "not of the other one" in row["problem"]
    (row,) = rooflines({"flops": 800e6, "bytes": 1, "busy_ns": 1000}, gpu="MI300X", peak="measured")
    assert row["efficiency_pct"] == pytest.approx(100 * 800 / 708)
    assert "over 110 % of the measured peak, though" in row["problem"]


def test_hostile_sizes_do_not_overflow() -> None:
    row = roofline(flops=1e300, bytes=1e300, busy_ns=1, batch=1e200, h_q=1e100, n_q=1e100)
    assert row["anomaly"] is True
    assert all(not math.isnan(one) for one in row.values() if isinstance(one, float))
