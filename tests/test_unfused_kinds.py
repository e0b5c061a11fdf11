"""Attention without a fused kernel, as models of many kinds write it: what it computes, and its
share; figures are counted here from the sizes that each was made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import answer, command
from eager_made import (
    backward,
    both_ways,
    compiled,
    einsum,
    flat_heads,
    interface,
    linear,
    math,
    matmul,
    module,
    norm,
    shared_keys,
    softmax,
)
from operators_made import CALLS, FP32, Op, Tape

Row = dict[str, Any]
SIZES = ("batch", "h_q", "h_kv", "n_q", "n_kv", "d_qk", "d_v")


def fp32(b: int, h: int, n: int, d: int) -> list[Op]:
    """Return attention of a model in fp32 whose products run in TF32."""
    scores = [b, h, n, n]
    first = matmul([b, h, n, d], [b, h, d, n], dtype=FP32)
    return [first, softmax(scores), matmul(scores, [b, h, n, d], dtype=FP32)]


# Operators, sizes as in SIZES, biases and masks (elements), activities.
KINDS: dict[str, tuple[list[Op], tuple[int, ...], int, int]] = {
    "interface": (interface(4, 12, 24, 24, 64), (4, 12, 12, 24, 24, 64, 64), 0, 8),
    "frames": (interface(98, 12, 8, 8, 64), (98, 12, 12, 8, 8, 64, 64), 0, 8),
    "cross": (interface(2, 8, 30, 77, 40), (2, 8, 8, 30, 77, 40, 40), 0, 8),
    "masked": (
        interface(2, 8, 24, 24, 64, [[2, 1, 24, 24]]),
        (2, 8, 8, 24, 24, 64, 64),
        2 * 24 * 24,
        9,
    ),
    # A bias for each head, and a mask for each window that is added twice.
    "windows": (
        interface(32, 4, 49, 49, 32, [[1, 4, 49, 49], [32, 1, 49, 49], [32, 1, 49, 49]]),
        (32, 4, 4, 49, 49, 32, 32),
        (4 + 32) * 49 * 49,
        11,
    ),
    "rows": (interface(1, 4, 40, 40, 16, [[1, 1, 1, 40]]), (1, 4, 4, 40, 40, 16, 16), 40, 9),
    "flat": (flat_heads(2, 12, 36, 36, 64), (2, 12, 12, 36, 36, 64, 64), 0, 3),
    "flat masked": (
        flat_heads(3, 8, 16, 16, 64, masked=True),
        (3, 8, 8, 16, 16, 64, 64),
        3 * 16 * 16,
        4,
    ),
    "flat cross": (flat_heads(2, 8, 100, 850, 32), (2, 8, 8, 100, 850, 32, 32), 0, 3),
    "module": (module(2, 8, 50, 32), (2, 8, 8, 50, 50, 32, 32), 2 * 8 * 50 * 50, 3),
    "einsum": (einsum(2, 8, 30, 50, 32), (2, 8, 8, 30, 50, 32, 32), 0, 5),
    "shared keys": (shared_keys(2, 8, 30, 40, 64), (2, 8, 1, 30, 40, 64, 64), 2 * 30 * 40, 4),
    # Nothing behind it tells heads from batch.
    "compiled": (compiled(24, 128, 64), (24, 1, 1, 128, 128, 64, 64), 0, 3),
    "templates": (compiled(24, 128, 64, template=True), (24, 1, 1, 128, 128, 64, 64), 0, 3),
    "both ways": (both_ways(4, 90, 20, 256), (4, 1, 1, 90, 20, 256, 256), 0, 5),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Return the call of each kind, by its name."""
    tape = Tape("NVIDIA H100 80GB HBM3")
    for operators, *_ in KINDS.values():
        tape.run(norm([2, 64], 768), *operators, norm([2, 64], 768), linear([2, 64], 768))
    return dict(zip(KINDS, tape.ask(tmp_path_factory.mktemp("kinds"), CALLS), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_one_call_with_its_sizes(found: dict[str, Row], kind: str) -> None:
    _, sizes, bias, activities = KINDS[kind]
    call = found[kind]
    assert tuple(call[size] for size in SIZES) == sizes
    assert (call["implementation"], call["library"]) == ("unfused", "PyTorch")
    assert (call["direction"], call["mask"], call["bias_elements"]) == ("fwd", "dense", bias)
    assert (call["evidence"], call["problem"], call["shape_source"]) == (
        "unfused",
        None,
        "operator",
    )
    assert call["n_activities"] == activities
    assert call["core_ns"] == call["busy_ns"]


@pytest.mark.parametrize("kind", KINDS)
def test_work_is_that_of_a_fused_kernel(found: dict[str, Row], kind: str) -> None:
    """Products of all pairs; query, key, value, output and what is added to the scores, once."""
    batch, h_q, h_kv, n_q, n_kv, d_qk, d_v = KINDS[kind][1]
    call = found[kind]
    products = sum(2 * batch * h_q * n_q * n_kv * d for d in (d_qk, d_v))
    tensors = batch * h_q * n_q * (d_qk + d_v) + batch * h_kv * n_kv * (d_qk + d_v)
    biases = call["bias_elements"] * (1 if call["bias_dtype"] == "bool" else 2)
    assert call["flops"] == products
    assert call["bytes"] == 2 * tensors + biases
    assert call["score_bytes"] == 4 * 2 * batch * h_q * n_q * n_kv
    compute_us, memory_us = products / 989.4e6, call["bytes"] / 3.35e6
    assert call["bound"] == ("compute" if compute_us >= memory_us else "memory")
    roofline_us = max(compute_us, memory_us)
    assert call["efficiency_pct"] == pytest.approx(1e5 * roofline_us / call["busy_ns"])


def test_products_in_tf32_have_its_peak(tmp_path: Path) -> None:
    tape = Tape("NVIDIA H100 80GB HBM3")
    for _ in range(2):
        tape.run(norm([2, 40], 512), *fp32(2, 8, 400, 64), linear([2, 400], 512))
    tape.run(math(2, 8, 8, 400, 64, dtype=FP32))
    *_, call, path = tape.ask(tmp_path, CALLS)
    for row in (call, path):
        assert (row["q_dtype"], row["precision"], row["dtype_source"]) == (
            *("tf32", "tf32"),
            "kernel name",
        )
        assert row["bytes"] == 4 * 4 * 2 * 8 * 400 * 64
        flops = 4 * 2 * 8 * 400 * 400 * 64
        assert row["roofline_us"] == pytest.approx(max(flops / 494.7e6, row["bytes"] / 3.35e6))


def test_backward_counts_four_products_and_knows_its_forward(tmp_path: Path) -> None:
    b, h, n, m, d = 4, 12, 32, 20, 64
    for shapes in (True, False):
        tape = Tape("NVIDIA A100-SXM4-80GB", shapes=shapes)
        tape.run(*interface(b, h, n, m, d), linear([b, n], h * d))
        tape.tid = 2
        tape.run(*backward(b, h, n, m, d), *backward(b, h, n, m, d))
        folder = tmp_path / str(shapes)
        folder.mkdir()
        first, *rest = tape.ask(folder, CALLS)
        assert (first["direction"], first["phase"]) == ("fwd", "train_fwd")
        assert [row["phase"] for row in rest] == ["train_bwd"] * 2
        for row in rest:
            assert (row["direction"], row["implementation"]) == ("bwd", "unfused")
            # Four products, the softmax's and the scale's gradient, two casts.
            assert row["n_activities"] == 8
            assert row["busy_ns"] == (4 * 10 + 8 + 3 + 2 * 4) * 1000
            if shapes:
                assert tuple(row[size] for size in SIZES) == (b, h, h, n, m, d, d)
                assert row["flops"] == 4 * 2 * b * h * n * m * d
            else:
                assert row["problem"] == "no shapes recorded: profile with record_shapes=True"


def test_the_path_without_a_fused_kernel_is_one_call(tmp_path: Path) -> None:
    tape = Tape("AMD Instinct MI300X")
    tape.run(math(2, 8, 2, 64, 32), linear([2, 64], 256), math(2, 8, 8, 64, 32, causal=False))
    causal, dense = tape.ask(tmp_path, CALLS)
    assert causal["operator"] == "aten::_scaled_dot_product_attention_math"
    assert [(row["h_kv"], row["mask"]) for row in (causal, dense)] == [
        (2, "causal_tl"),
        (8, "dense"),
    ]
    for row in (causal, dense):
        assert row["implementation"] == "unfused"
        assert row["flops"] == 4 * 2 * 8 * 64 * 64 * 32
    assert [row["n_activities"] for row in (causal, dense)] == [8, 6]


def test_the_share_of_unfused_attention_is_all_of_its_time(tmp_path: Path) -> None:
    """Image and text, as a detector of open words has them; on a GPU of either vendor."""
    tape = Tape("NVIDIA H100 80GB HBM3")
    layers = [flat_heads(2, 12, 360, 360, 64)] * 3 + [flat_heads(8, 8, 16, 16, 64, True)] * 3
    for layer in layers:
        tape.run(norm([2, 64], 768), *layer, linear([2, 64], 768))
    path = tape.write(tmp_path / "detector.json")
    shown = answer(command(tmp_path, "attention", path, "--format", "json"))
    kernels = [event for event in tape.events if event["cat"] == "kernel"]
    total = sum(event["dur"] for event in kernels)
    # Two products and a softmax; the text's mask.
    attention = 3 * (30 + 40 + 30) + 3 * (30 + 6 + 40 + 30)
    (whole,) = [row for row in shown["shares"] if row["scope"] == "trace"]
    assert whole["busy_pct"] == pytest.approx(100 * attention / total)
