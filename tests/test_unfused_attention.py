"""Attention without a fused kernel: found by its products and softmax, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from host_made import Host, ask

QK, PV, LINEAR = "ampere_bf16_gemm_qk", "ampere_bf16_gemm_pv", "ampere_bf16_gemm_linear"
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float> >(int)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>(int)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
SOFTMAX_BACKWARD = "void (anonymous namespace)::softmax_warp_backward<float, float, float, 8>"
TOPK = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"

COLUMNS = "direction, batch, h_q, h_kv, n_q, n_kv, d_qk, d_v, n_activities, problem"
SIZES = ("batch", "h_q", "n_q", "n_kv", "d_qk", "d_v")
Made = Callable[[Host], Any]


def calls(folder: Path, host: Host, columns: str = COLUMNS) -> list[dict[str, Any]]:
    return ask(
        folder,
        host.events,
        f"select {columns} from attention_calls where implementation = 'unfused' order by call_no",
    )


def linear(host: Host, rows: int = 32) -> None:
    dims = [[rows, 64], [64, 64]]
    host.call("aten::linear", dims, host.operator("aten::mm", LINEAR, dims=dims))


def softmax(host: Host, dims: list[int], dim: int = -1) -> None:
    host.call("aten::_softmax", [dims], SOFTMAX, scalars=[str(dim), "False"])


def matmul(host: Host, one: list[int], other: list[int], kernel: str, copies: int = 0) -> None:
    """Multiply 4-D tensors as `aten::matmul` does: copies of views, then a product of batches."""
    matrices = one[0] * one[1]
    copied = [host.operator("aten::copy_", COPY, dims=[other, other])] * copies
    product = host.operator(
        "aten::bmm", kernel, dims=[[matrices, *one[2:]], [matrices, *other[2:]]]
    )
    host.call("aten::matmul", [one, other], *copied, product)


def eager(host: Host, *, b: int, h: int, n: int, m: int, d: int, dv: int, copies: int = 0) -> None:
    """Call attention as models write it: scores, scale, mask, softmax in fp32, weights."""
    matmul(host, [b, h, n, d], [b, h, d, m], QK, copies)
    host.call("aten::mul", [[b, h, n, m], []], SCALE)
    host.call("aten::add", [[b, h, n, m], [b, 1, n, m]], SCALE)
    cast = host.operator("aten::copy_", COPY, dims=[[b, h, n, m]] * 2)
    host.call("aten::to", [[b, h, n, m]], cast)
    softmax(host, [b, h, n, m])
    matmul(host, [b, h, n, m], [b, h, m, dv], PV, copies)


def test_a_chain_of_operators_is_one_call_with_all_its_kernels(tmp_path: Path) -> None:
    host = Host()
    for kv in (24, 40):
        linear(host)
        eager(host, b=2, h=3, n=24, m=kv, d=8, dv=16, copies=1)
        host.call("aten::copy_", [[2, 24, 48]] * 2, COPY)
        linear(host)
    rows = calls(tmp_path, host, f"{COLUMNS}, operator, q_dtype, busy_ns, core_ns, mask, evidence")
    assert [[row[key] for key in SIZES] for row in rows] == [
        [2, 3, 24, 24, 8, 16],
        [2, 3, 24, 40, 8, 16],
    ]
    for row in rows:
        assert (row["h_kv"], row["direction"], row["q_dtype"]) == (3, "fwd", "bf16")
        assert (row["mask"], row["problem"], row["evidence"]) == ("dense", None, "unfused")
        # Two copies, two products, scale, mask, cast and softmax.
        assert row["n_activities"] == 8
        assert row["busy_ns"] == row["core_ns"] == 80_000
        assert row["operator"] == "bmm + _softmax + bmm"


def test_products_of_batches_alone_count_heads_as_batch(tmp_path: Path) -> None:
    host = Host()
    host.call("aten::baddbmm", [[6, 24, 40], [6, 24, 8], [6, 8, 40]], QK)
    softmax(host, [6, 24, 40])
    host.call("aten::dropout", [[6, 24, 40]], SCALE)
    host.call("aten::bmm", [[6, 24, 40], [6, 40, 8]], PV)
    [row] = calls(tmp_path, host)
    assert [row[key] for key in SIZES] == [6, 1, 24, 40, 8, 8]
    assert row["n_activities"] == 4


def test_a_single_head_may_multiply_plain_matrices(tmp_path: Path) -> None:
    host = Host()
    host.call("aten::mm", [[24, 8], [8, 40]], QK)
    softmax(host, [24, 40])
    host.call("aten::mm", [[24, 40], [40, 8]], PV)
    [row] = calls(tmp_path, host)
    assert [row[key] for key in SIZES] == [1, 1, 24, 40, 8, 8]


def test_weights_may_stand_behind_values(tmp_path: Path) -> None:
    """As in the decoders of images: scores are transposed, values come first."""
    host = Host()
    host.call("aten::bmm", [[2, 48, 16], [2, 16, 40]], QK)
    softmax(host, [2, 48, 40])
    host.call("aten::bmm", [[2, 20, 40], [2, 40, 48]], PV)
    [row] = calls(tmp_path, host)
    assert [row[key] for key in SIZES] == [2, 1, 48, 40, 16, 20]


def test_products_of_a_position_bias_do_not_hide_the_scores(tmp_path: Path) -> None:
    host = Host()
    host.call("aten::bmm", [[6, 24, 8], [6, 8, 40]], QK)
    for _ in range(2):
        host.call("aten::bmm", [[6, 24, 8], [6, 8, 64]], QK)
        host.call("aten::gather", [[6, 24, 64]], SCALE)
    softmax(host, [2, 3, 24, 40])
    host.call("aten::bmm", [[6, 24, 40], [6, 40, 8]], PV)
    [row] = calls(tmp_path, host)
    assert [row[key] for key in SIZES] == [2, 3, 24, 40, 8, 8]
    assert row["n_activities"] == 7


def test_a_compiled_softmax_has_the_shape_of_its_products(tmp_path: Path) -> None:
    host = Host()
    host.call("aten::bmm", [[6, 24, 8], [6, 8, 40]], QK)
    kernel = "triton_per_fused__softmax__to_copy_mul_3"
    host.call(kernel, [[6, 24, 40], [6, 24, 1]], kernel)
    host.call("aten::bmm", [[6, 24, 40], [6, 40, 8]], PV)
    [row] = calls(tmp_path, host)
    assert [row[key] for key in SIZES] == [6, 1, 24, 40, 8, 8]


def test_a_causal_softmax_tells_the_mask(tmp_path: Path) -> None:
    host = Host()
    host.call("aten::bmm", [[6, 24, 8], [6, 8, 24]], QK)
    host.call("ScaledUpperTriangMaskedSoftmax", [[6, 24, 24]], SCALE)
    host.call("aten::bmm", [[6, 24, 24], [6, 24, 8]], PV)
    [row] = calls(tmp_path, host, f"{COLUMNS}, mask")
    assert (row["mask"], row["n_q"], row["n_kv"]) == ("causal_tl", 24, 24)


def backward(host: Host) -> None:
    b, n, m, d, dv = 6, 24, 40, 8, 16
    host.call("aten::bmm", [[b, n, dv], [b, dv, m]], PV)
    host.call("aten::bmm", [[b, m, n], [b, n, dv]], PV)
    host.call("aten::_softmax_backward_data", [[b, n, m], [b, n, m]], SOFTMAX_BACKWARD)
    host.call("aten::mul", [[b, n, m], []], SCALE)
    host.call("aten::bmm", [[b, n, m], [b, m, d]], QK)
    host.call("aten::bmm", [[b, d, n], [b, n, m]], QK)


def test_backward_has_four_products(tmp_path: Path) -> None:
    host = Host()
    linear(host)
    backward(host)
    linear(host)
    backward(host)
    rows = calls(tmp_path, host)
    for row in rows:
        assert row["direction"] == "bwd"
        assert [row[key] for key in SIZES] == [6, 1, 24, 40, 8, 16]
        assert row["n_activities"] == 6
    assert len(rows) == 2


def test_without_shapes_a_call_says_so(tmp_path: Path) -> None:
    host = Host(shapes=False)
    linear(host)
    eager(host, b=2, h=3, n=24, m=40, d=8, dv=8)
    [row] = calls(tmp_path, host)
    assert row["problem"] == "no shapes recorded: profile with record_shapes=True"
    assert {row[key] for key in SIZES} == {None}
    assert row["n_activities"] == 6


# What it is not.


def sampler(host: Host) -> None:
    linear(host)
    softmax(host, [32, 64])
    host.call("aten::multinomial", [[32, 64]], SCALE)
    linear(host)


def router(host: Host) -> None:
    host.call("aten::mm", [[32, 64], [64, 16]], LINEAR)
    softmax(host, [32, 16])
    host.call("aten::topk", [[32, 16]], TOPK)
    host.call("aten::bmm", [[16, 2, 64], [16, 64, 128]], LINEAR)


def contrast(host: Host) -> None:
    host.call("aten::mm", [[32, 64], [64, 32]], QK)
    softmax(host, [32, 32])
    linear(host, 64)


def interaction(host: Host) -> None:
    host.call("aten::bmm", [[32, 27, 64], [32, 64, 27]], QK)
    linear(host)
    softmax(host, [32, 2])


def over_another_dimension(host: Host) -> None:
    host.call("aten::bmm", [[6, 24, 8], [6, 8, 24]], QK)
    softmax(host, [6, 24, 24], dim=1)
    host.call("aten::bmm", [[6, 24, 24], [6, 24, 8]], PV)


def other_lengths(host: Host) -> None:
    host.call("aten::bmm", [[6, 24, 8], [6, 8, 40]], QK)
    softmax(host, [6, 24, 40])
    host.call("aten::bmm", [[6, 24, 48], [6, 48, 8]], PV)


def odd_shapes(host: Host) -> None:
    odd: Any = [["x", None], {"a": 1}]
    host.call("aten::bmm", odd, QK)
    softmax(host, [])
    host.call("aten::mm", [], PV)


@pytest.mark.parametrize(
    "made",
    [
        *(sampler, router, contrast, interaction, over_another_dimension, other_lengths),
        odd_shapes,
    ],
)
def test_another_softmax_is_no_attention(tmp_path: Path, made: Made) -> None:
    host = Host()
    for _ in range(3):
        made(host)
    assert calls(tmp_path, host) == []


# Kernels alone.


def kernels(names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            **{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7},
            **{"ts": 1000 + 10 * place, "dur": 5, "args": {"device": 0, "stream": 7}},
        }
        for place, name in enumerate(names)
    ]


def test_kernels_alone_are_told_by_their_order(tmp_path: Path) -> None:
    layer = [LINEAR, "rms_norm_kernel", QK, SCALE, SOFTMAX, COPY, PV, COPY, "rms_norm_kernel"]
    rows = ask(
        tmp_path,
        kernels(layer * 3),
        f"select {COLUMNS}, evidence, start_ns from attention_calls order by call_no",
    )
    assert [row["n_activities"] for row in rows] == [5, 5, 5]
    assert {row["evidence"] for row in rows} == {"unfused"}
    assert {row["problem"] for row in rows} == {
        "no shapes recorded: profile with record_shapes=True"
    }
    assert {later["start_ns"] - row["start_ns"] for row, later in pairwise(rows)} == {90_000}


@pytest.mark.parametrize(
    "layer",
    [
        # A router, a sampler, and one softmax in all.
        [LINEAR, SOFTMAX, TOPK, LINEAR] * 3,
        [LINEAR, SOFTMAX, "rms_norm_kernel", LINEAR] * 3,
        [QK, SOFTMAX, PV],
    ],
)
def test_order_alone_does_not_make_attention(tmp_path: Path, layer: list[str]) -> None:
    assert ask(tmp_path, kernels(layer), "from attention_calls") == []
