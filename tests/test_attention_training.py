"""Fused attention of models, forward and backward, by every library: nested as PyTorch nests it,
with the kernels of each; figures are counted here from shapes, pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from operators_made import BF16, CALLS, FP16, FP32, Op, Tape, op
from pair_counts import causal_br, dense, pairs

Row = dict[str, Any]
Kernels = list[Any]
SDPA = "aten::scaled_dot_product_attention"
A = "aten::_scaled_dot_product_"
SIZES = ("batch", "n_q", "n_kv", "h_q", "h_kv", "d_qk", "d_v")
BYTES = {BF16: 2, FP16: 2, FP32: 4}


def torch(
    kind: str, q: list[int], k: list[int], kernels: Kernels, *, causal: bool = False, **more: Any
) -> Op:
    """Return `scaled_dot_product_attention` by one of its kernels; batch, heads, tokens, size."""
    flag, bias = str(causal), more.pop("bias", [])
    swapped = [[one[0], one[2], one[1], one[3]] for one in (q, k, k)]
    inner = {
        "flash": ("aten::_flash_attention_forward", {7: "0.", 8: flag}),
        "efficient": ("aten::_efficient_attention_forward", {9: str(int(causal))}),
        "cudnn": ("aten::_cudnn_attention_forward", {10: flag}),
    }[kind]
    at = {"flash": {3: "0.", 4: flag, 5: "False"}}
    scalars = at.get(kind, {4: "True", 5: "0.", 6: flag})
    dims = [q, k, k, *([bias] if bias else [])]
    run = op(inner[0], *kernels, dims=swapped, scalars=inner[1], **more)
    call = op(f"{A}{kind}_attention", run, dims=dims, scalars=scalars, **more)
    return op(SDPA, call, dims=dims, scalars={4: "0.", 5: flag}, **more)


def torch_backward(
    kind: str, q: list[int], k: list[int], kernels: Kernels, *, causal: bool = False
) -> Op:
    flag, sums = str(causal), q[:3]
    dims = {
        "flash": [q, q, k, k, q, sums],
        "efficient": [q, q, k, k, [], q, sums],
        "cudnn": [q, q, k, k, q, sums],
    }[kind]
    scalars = {14: flag} if kind == "cudnn" else {11: flag}
    inner = op(f"aten::_{kind}_attention_backward", *kernels)
    call = op(f"{A}{kind}_attention_backward", inner, dims=dims, scalars=scalars)
    name = f"ScaledDotProduct{kind.title()}AttentionBackward0"
    return op(f"autograd::engine::evaluate_function: {name}", op(name, call))


FLASH_2 = (
    "void {0}flash_fwd_kernel<{0}Flash_fwd_kernel_traits<64, 128, 128, 4, false, false,"
    " cutlass::bfloat16_t, x>, false, true, false, false, true, true, false>({0}Flash_fwd_params)"
)
FLASH_2_BACKWARD = [
    ("void {}flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<x> >(y)", 10),
    ("void {}flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<x> >(y)", 300),
    ("void {}flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<x> >(y)", 10),
]


def flash_2(prefix: str) -> Kernels:
    return [(name.format(prefix), us) for name, us in FLASH_2_BACKWARD]


CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_{}_wgmma_f16_knob_7_64x128x128_kernel0_0"
CUDNN_BACKWARD = [
    ("void cudnn::fusion::cudnn_sdpa_compute_dot_do_o_specialized<true, __half, 128>", 10),
    (CUDNN.format("bprop"), 300),
]
EFFICIENT = "fmha_cutlass{}_{}_aligned_64x128_rf_sm80(PyTorchMemEffAttention::x::Params)"
AOTRITON_BACKWARD = [("bwd_preprocess", 10), ("bwd_kernel_dk_dv", 300), ("bwd_kernel_dq", 200)]
ASM = "_ZN5aiter{}E"
ASM_BACKWARD = [
    ("_ZN7ck_tile6kentryILi2ENS_24FmhaBwdOGradDotOKernelIx", 20),
    (ASM.format("46fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv"), 900),
    ("_ZN7ck_tile6kentryILi2ENS_25FmhaBwdConvertQGradKernelIx", 20),
]


def flash_attn(q: list[int], k: list[int], number: int) -> Op:
    scalars = {3: "0.", 4: "0.125", 5: "True", 6: "-1", 7: "-1", 8: "0."}
    inner = op(
        "flash_attn::_flash_attn_forward", FLASH_2.format(""), dims=[q, k, k], scalars=scalars
    )
    return op("FlashAttnFunc", inner, dims=[q, k, k], sequence=number)


def flash_attn_backward(q: list[int], k: list[int], number: int) -> Op:
    """The gradient stands first; scale stands where causal was in other versions."""
    dims = [q, q, k, k, q, [q[0], q[2], q[1]], q, k, k]
    scalars = {9: "0.", 10: "0.125", 11: "True", 12: "-1", 13: "-1"}
    inner = op("flash_attn::_flash_attn_backward", *flash_2(""), dims=dims, scalars=scalars)
    name = "FlashAttnFuncBackward"
    return op(f"autograd::engine::evaluate_function: {name}", op(name, inner, sequence=number))


def flash_attn_3(q: list[int], k: list[int]) -> Op:
    kernel = (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
        "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >,"
        " cute::tuple<cute::C<128>, cute::C<128>, cute::C<64> >, 64, cutlass::bfloat16_t, float,"
        " cutlass::arch::Sm90, true, false, false, false, false, false>>>>(x)"
    )
    scalars = {23: "0.125", 24: "True", 25: "-1", 26: "-1", 27: "0", 28: "0."}
    return op("flash_attn_3::fwd", kernel, dims=[q, k, k], scalars=scalars)


def aiter(q: list[int], causal: bool) -> Op:
    name = "fmha_fwd_hd128_bf16_causal" if causal else "fmha_fwd_hd128_bf16"
    scalars = {3: "0.", 4: "0.088", 5: str(causal), 6: "-1", 7: "-1"}
    return op("aiter::fmha_v3_fwd", ASM.format(f"20{name}"), dims=[q, q, q], scalars=scalars)


def aiter_backward(q: list[int]) -> Op:
    scalars = {6: "0.", 7: "0.088", 8: "True", 9: "-1", 10: "-1"}
    return op("aiter::fmha_v3_bwd", *ASM_BACKWARD, dims=[q] * 5, scalars=scalars)


# Of torch: batch, heads, tokens, head size; of the others tokens stand before heads.
Q, K = [2, 16, 96, 64], [2, 4, 96, 64]
LONG, CROSS, WIDE = [1, 1, 512, 384], [2, 16, 77, 64], [2, 16, 96, 64]
BNHD, GROUPED, HUGE = [2, 96, 16, 64], [2, 96, 4, 64], [1, 120, 24, 128]
FORWARD, BACKWARD = {"direction": "fwd"}, {"direction": "bwd"}
TL = {"mask": "causal_tl"}
BR = {"mask": "causal_br"}

# Operator, query as (batch, heads, tokens, size), key alike, causal, type, what else must hold.
Case = tuple[Op, list[int], list[int], bool, str, dict[str, Any]]
CASES: dict[str, Case] = {
    "flash": (
        torch("flash", Q, K, [FLASH_2.format("pytorch_flash::")], causal=True),
        *(Q, K, True, BF16),
        {"library": "FlashAttention-2", **FORWARD, **TL},
    ),
    "flash backward": (
        torch_backward("flash", Q, K, flash_2("pytorch_flash::"), causal=True),
        *(Q, K, True, BF16),
        {"library": "FlashAttention-2", **BACKWARD, **TL, "n_activities": 3},
    ),
    "efficient, cross": (
        torch("efficient", Q, CROSS, [EFFICIENT.format("F", "bf16")]),
        *(Q, CROSS, False, BF16),
        {"library": "CUTLASS memory-efficient", **FORWARD, "mask": "dense"},
    ),
    "efficient, one wide head": (
        torch("efficient", LONG, LONG, [EFFICIENT.format("F", "f16")], types=FP16),
        *(LONG, LONG, False, FP16),
        {"implementation": "flash", "q_dtype": "fp16"},
    ),
    "efficient in fp32": (
        torch("efficient", WIDE, WIDE, [EFFICIENT.format("F", "f32")], types=FP32),
        *(WIDE, WIDE, False, FP32),
        {"q_dtype": "fp32"},
    ),
    "efficient with a bias": (
        torch("efficient", WIDE, WIDE, [EFFICIENT.format("F", "bf16")], bias=[1, 1, 96, 96]),
        *(WIDE, WIDE, False, BF16),
        {"bias_elements": 96.0 * 96, "mask": "dense"},
    ),
    "efficient backward": (
        torch_backward("efficient", WIDE, WIDE, [EFFICIENT.format("B", "bf16")]),
        *(WIDE, WIDE, False, BF16),
        {"library": "CUTLASS memory-efficient", **BACKWARD, "mask": "dense"},
    ),
    "cudnn": (
        torch("cudnn", WIDE, WIDE, [CUDNN.format("fprop")], causal=True),
        *(WIDE, WIDE, True, BF16),
        {"library": "cuDNN", **FORWARD, **TL},
    ),
    "cudnn backward": (
        torch_backward("cudnn", WIDE, WIDE, CUDNN_BACKWARD, causal=True),
        *(WIDE, WIDE, True, BF16),
        {"library": "cuDNN", **BACKWARD, **TL, "n_activities": 2},
    ),
    # A fill inside of the operator is a part of it, and not of what attends.
    "aotriton": (
        torch("flash", WIDE, WIDE, [("Memset (Device)", 4), ("attn_fwd", 60)], causal=True),
        *(WIDE, WIDE, True, BF16),
        {"library": "AOTriton", **TL, "busy_ns": 64_000, "core_ns": 60_000},
    ),
    "aotriton backward": (
        torch_backward("flash", WIDE, WIDE, AOTRITON_BACKWARD, causal=True),
        *(WIDE, WIDE, True, BF16),
        {"library": "AOTriton", **BACKWARD, "core_ns": 510_000},
    ),
    "flash-attn": (
        flash_attn(BNHD, GROUPED, 7),
        *(Q, K, True, BF16),
        {"operator": "flash_attn::_flash_attn_forward", **BR, "library": "FlashAttention-2"},
    ),
    "flash-attn backward": (
        flash_attn_backward(BNHD, GROUPED, 7),
        *(Q, K, True, BF16),
        {"operator": "flash_attn::_flash_attn_backward", **BR, **BACKWARD},
    ),
    "flash-attn 3": (
        flash_attn_3(BNHD, GROUPED),
        *(Q, K, True, BF16),
        {"library": "FlashAttention-3", **BR},
    ),
    "aiter": (
        aiter(HUGE, causal=False),
        *([1, 24, 120, 128], [1, 24, 120, 128], False, BF16),
        {"library": "AITER", "mask": "dense"},
    ),
    "aiter backward": (
        aiter_backward(HUGE),
        *([1, 24, 120, 128], [1, 24, 120, 128], True, BF16),
        {"library": "AITER", **BR, **BACKWARD, "core_ns": 940_000},
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Return the call of each case, by its name."""
    tape = Tape("NVIDIA H100 80GB HBM3")
    tape.run(*(operator for operator, *_ in CASES.values()))
    return dict(zip(CASES, tape.ask(tmp_path_factory.mktemp("training"), CALLS), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_call_has_the_work_of_its_shape(found: dict[str, Row], case: str) -> None:
    _, q, k, causal, dtype, more = CASES[case]
    call = found[case]
    batch, h_q, n_q, d = q
    h_kv, n_kv = k[1:3]
    assert tuple(call[size] for size in SIZES) == (batch, n_q, n_kv, h_q, h_kv, d, d)
    assert {key: call[key] for key in more} == more
    assert (call["evidence"], call["shape_source"], call["problem"]) == (
        "operator",
        "operator",
        None,
    )
    backward = call["direction"] == "bwd"
    assert call["phase"] == ("train_bwd" if backward else "train_fwd")
    # Query times key and weights times value; backward, the first again and four gradients.
    products = 5 if backward else 2
    seen = pairs(n_q, n_kv, causal_br if causal else dense)
    assert call["flops"] == products * 2 * batch * h_q * seen * d
    query, key, size = batch * h_q * n_q * d, batch * h_kv * n_kv * d, BYTES[dtype]
    if backward:
        # Query, key, value, output and its gradient read, three gradients written; for a row of
        # each head the sum of its softmax and of output times gradient, in fp32.
        moved = (4 * query + 4 * key) * size + 2 * 4 * batch * h_q * n_q
    else:
        moved = (2 * query + 2 * key + call["bias_elements"]) * size
    assert call["bytes"] == moved
    peak = {FP32: 66.9}.get(dtype, 989.4)
    compute_us, memory_us = call["flops"] / peak / 1e6, moved / 3.35e6
    assert call["bound"] == ("compute" if compute_us >= memory_us else "memory")
    roofline_us = max(compute_us, memory_us)
    assert call["efficiency_pct"] == pytest.approx(1e5 * roofline_us / call["busy_ns"])


def test_what_an_argument_should_tell_and_does_not_is_assumed(tmp_path: Path) -> None:
    """Some profilers leave out scalars; the name of a kernel may tell what they would."""
    causal = FLASH_2.format("").replace("false, true, false, false", "true, true, false, false")
    tape = Tape("NVIDIA H100 80GB HBM3")
    tape.run(
        op("aiter::fmha_v3_fwd", "some_kernel", dims=[BNHD] * 3),
        op("aiter::fmha_v3_fwd", ASM.format("20fmha_fwd_hd128_bf16_causal"), dims=[BNHD] * 3),
        op("flash_attn::_flash_attn_forward", causal, dims=[BNHD] * 3),
    )
    unknown, named, _ = tape.ask(tmp_path, CALLS)
    assert (unknown["mask"], unknown["mask_source"]) == ("dense", "assumed")
    assert unknown["mask_assumption"] == ("no mask, as nothing recorded tells another")
    assert (named["mask"], named["mask_source"]) == ("causal_br", "kernel name")
    assert named["flops"] == 2 * 2 * 2 * 16 * pairs(96, 96, causal_br) * 64
