"""Attention by operator: which operator is the call, what its arguments say, which kernels are its.

Shapes are what the operator was called with, written down beside the arguments as profilers record
them; counts and times of real traces are sums of their kernels by plain Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Analyse, Shared
from host_made import FP8, FP16, Host

from trace_sql.attention_rules import Rule, kernel_rules, operator_rules

FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(x)"
FLASH_BACKWARD = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>(y)"
SIZES = ("batch", "n_q", "n_kv", "h_q", "h_kv", "d_qk", "d_v")


def attention_calls(host: Host, analyse: Analyse, folder: Path) -> list[dict[str, Any]]:
    """Return the calls in order of time."""
    path = host.write(folder / "t.json")
    return analyse(path).rows("from attention_calls order by call_no")


def sizes(call: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(call[key] for key in SIZES)


def four(b: int, x: int, y: int, d: int, n: int = 3) -> list[list[int]]:
    return [[b, x, y, d]] * n


# Name, dims, scalars, then sizes as in SIZES and what else must hold.
DENSE = (2.0, 100.0, 100.0, 8.0, 8.0, 64.0, 64.0)
A = "aten::_scaled_dot_product_"
BHND, BNHD = four(2, 8, 100, 64), four(2, 100, 8, 64)
GRAD = {"direction": "bwd"}
TL, BR, FULL = ({"mask": mask} for mask in ("causal_tl", "causal_br", "dense"))
CU = [5]  # begins of four sequences
TND = [[400, 8, 64]] * 3
PACKED = (1.0, 400.0, 400.0, 8.0, 8.0, 64.0, 64.0)
VARLEN = {"n_seqs": 4.0, "max_q": 300.0, "max_kv": 310.0, "packed": True}
POOLED = (1.0, 32.0, None, 8.0, 2.0, 64.0, 64.0)
PAGES = [[1000, 16, 2, 64]] * 2
VECTOR = [1000, 2, 8, 16, 8]
FAMILIES: list[tuple[str, list[Any], dict[int, str], tuple[Any, ...], dict[str, Any]]] = [
    (A + "flash_attention", BHND, {3: "0.", 4: "True", 6: "0.1"}, DENSE, TL),
    (A + "efficient_attention", BHND, {4: "False", 5: "0.", 6: "1"}, DENSE, TL),
    (A + "cudnn_attention", BHND, {4: "True", 5: "0.", 6: "False"}, DENSE, FULL),
    # Before it took a bias.
    (A + "cudnn_attention", BHND, {3: "0.", 4: "True", 5: "False", 6: "0.125"}, DENSE, TL),
    (A + "fused_attention_overrideable", BHND, {4: "0.", 5: "true"}, DENSE, TL),
    (A + "flash_attention_backward", four(2, 8, 100, 64, 5), {11: "True"}, DENSE, {**TL, **GRAD}),
    (
        A + "efficient_attention_backward",
        [*four(2, 8, 100, 64, 4), [2, 8, 100, 100], [2, 8, 100, 64]],
        {11: "False"},
        DENSE,
        {**FULL, **GRAD, "bias_elements": 160000.0},
    ),
    (A + "cudnn_attention_backward", four(2, 8, 100, 64, 5), {14: "True"}, DENSE, {**TL, **GRAD}),
    ("aten::_flash_attention_forward", BNHD, {8: "True"}, DENSE, BR),
    (
        "aten::_flash_attention_forward",
        [*TND, CU, CU],
        {5: "300", 6: "310", 8: "True", 11: "63", 12: "0"},
        PACKED,
        {**VARLEN, "mask": "window", "window_size": 64.0},
    ),
    ("aten::_flash_attention_backward", four(2, 100, 8, 64, 5), {11: "True"}, DENSE, BR),
    ("aten::_efficient_attention_forward", BNHD, {9: "2"}, DENSE, BR),
    (
        "aten::_efficient_attention_forward",
        [*[[1, 400, 8, 64]] * 3, [], CU, CU],
        {6: "300", 7: "310", 9: "1"},
        PACKED,
        {**VARLEN, **TL},
    ),
    ("aten::_efficient_attention_backward", four(2, 100, 8, 64, 4), {14: "0"}, DENSE, FULL),
    ("flash_attn::_flash_attn_forward", BNHD, {3: "0.", 5: "True", 6: "-1", 7: "-1"}, DENSE, BR),
    # No window to the left and none to the right is causal too.
    ("flash_attn::_flash_attn_forward", BNHD, {5: "False", 6: "-1", 7: "0"}, DENSE, BR),
    (
        "flash_attn::_flash_attn_varlen_forward",
        [*TND, CU, CU],
        {5: "300", 6: "310", 9: "True", 10: "-1", 11: "-1"},
        PACKED,
        {**VARLEN, **BR},
    ),
    # Scale stands where causal was looked for: not causal.
    (
        "flash_attn::_flash_attn_backward",
        four(2, 100, 8, 64, 9),
        {9: "0.", 10: "0.125", 11: "False"},
        DENSE,
        {**FULL, **GRAD},
    ),
    (
        "flash_attn::_flash_attn_varlen_backward",
        [*[[400, 8, 64]] * 5, [8, 400], *TND, CU, CU],
        {11: "300", 12: "310", 15: "True"},
        PACKED,
        {**VARLEN, **BR, **GRAD},
    ),
    ("flash_attn_3::fwd", BNHD, {24: "True", 25: "-1", 26: "-1", 27: "0"}, DENSE, BR),
    (
        "flash_attn_3::fwd",
        BNHD,
        {24: "True", 25: "-1", 26: "-1", 27: "32"},
        DENSE,
        {"mask": "chunked", "window_size": 32.0},
    ),
    (
        "_vllm_fa3_C::fwd",
        [[32, 8, 64], *PAGES, [], [], [], [32, 8, 64], [33], [], [], [], [32], *[[]] * 2, [32, 99]],
        {12: "1", 13: "4000", 24: "True"},
        POOLED,
        {"implementation": "paged", "n_seqs": 32.0, "max_q": 1.0, "packed": True, **BR},
    ),
    ("flash_attn_3::bwd", four(2, 100, 8, 64, 5), {16: "True"}, DENSE, {**BR, **GRAD}),
    (
        "_vllm_fa2_C::varlen_fwd",
        [[32, 8, 64], *PAGES, [32, 8, 64], [33], [33], [32], [], [32, 99]],
        {10: "1", 11: "4000", 15: "True", 16: "127", 17: "0"},
        POOLED,
        {"implementation": "paged", "mask": "window", "window_size": 128.0},
    ),
    ("_vllm_fa2_C::fwd_kvcache", [[32, 1, 8, 64], *PAGES], {14: "True"}, POOLED, {"n_seqs": 32.0}),
    ("FlashAttnFunc", BNHD, {5: "True"}, DENSE, BR),
    ("FlashAttnQKVPackedFunc", [[2, 100, 3, 8, 64]], {3: "False"}, DENSE, FULL),
    ("FlashAttnKVPackedFunc", [[2, 100, 8, 64], [2, 100, 2, 8, 64]], {4: "True"}, DENSE, BR),
    ("FlashAttnVarlenFunc", [*TND, CU, CU], {5: "300", 6: "310"}, PACKED, VARLEN),
    (
        "aiter::fmha_v3_fwd",
        BNHD,
        {5: "False", 6: "-1", 7: "-1"},
        DENSE,
        {**FULL, "library": "AITER"},
    ),
    ("aiter::mha_fwd", BNHD, {5: "True"}, DENSE, BR),
    ("aiter::wrapper_fmha_v3_fwd", [[], *BNHD], {6: "True"}, DENSE, BR),
    # Gradient first, and fewer key heads than query heads.
    (
        "aiter::_flash_attn_backward",
        [*four(2, 100, 8, 64, 2), *four(2, 100, 2, 64, 2), [2, 100, 8, 64]],
        {12: "True"},
        (2.0, 100.0, 100.0, 8.0, 2.0, 64.0, 64.0),
        {**BR, **GRAD},
    ),
    ("aiter::wrapper_fmha_v3_bwd", [[], *BNHD], {9: "True"}, DENSE, {**BR, **GRAD}),
    ("aiter::mha_bwd", four(2, 100, 8, 64, 5), {8: "False"}, DENSE, {**FULL, **GRAD}),
    (
        "aiter::mha_varlen_fwd",
        [*TND, CU, CU],
        {5: "300", 6: "310", 12: "False"},
        PACKED,
        {**VARLEN, **FULL},
    ),
    ("aiter::fmha_v3_varlen_fwd", [*TND, CU, CU], {5: "300", 6: "310"}, PACKED, {**VARLEN, **BR}),
    (
        "aiter::mha_varlen_bwd",
        [*[[400, 8, 64]] * 5, [], CU, CU],
        {8: "300", 9: "310", 13: "True"},
        PACKED,
        {**VARLEN, **BR, **GRAD},
    ),
    # The pool has 835874 tokens, and none of its size is the length of anything.
    (
        "aiter::mha_batch_prefill",
        [[32, 8, 64], [835874, 2, 64], [835874, 2, 64], [5], [5], [900]],
        {6: "20", 7: "900", 12: "True", 13: "-1", 14: "-1"},
        POOLED,
        {"implementation": "paged", "n_seqs": 4.0, "max_q": 20.0, **BR},
    ),
    (
        "aiter::mha_batch_prefill",
        [[32, 8, 64], VECTOR, [1000, 2, 2, 64, 8]],
        {12: "True"},
        POOLED,
        BR,
    ),
    (
        "sglang_profiler::attention_paged_attention_ragged_17",
        [[32, 8, 64], [9999], [32, 8, 64], [8358, 1, 2, 64], [8358, 1, 2, 64], [33]],
        {},
        POOLED,
        {"operator": "sglang_profiler::attention_paged_attention_ragged", "n_seqs": 32.0, **BR},
    ),
    (
        "_rocm_C::paged_attention",
        [
            [32, 8, 64],
            [32, 8, 4],
            [32, 8, 4],
            [32, 8, 4, 64],
            [32, 8, 64],
            VECTOR,
            [1000, 2, 64, 16],
        ],
        {7: "2", 8: "0.1"},
        POOLED,
        BR,
    ),
    (
        "aiter::paged_attention_v1",
        [[32, 8, 64], [9999], [32, 8, 64], VECTOR, [1000, 2, 64, 16]],
        {},
        POOLED,
        {"library": "AITER"},
    ),
    (
        "_C::paged_attention_v1",
        [[32, 8, 64], [32, 8, 64], VECTOR, [1000, 2, 64, 16]],
        {4: "2"},
        POOLED,
        BR,
    ),
    (
        "_C::paged_attention_v2",
        [[32, 8, 64], [], [], [], [32, 8, 64], VECTOR, [1000, 2, 64, 16]],
        {7: "2"},
        POOLED,
        BR,
    ),
    ("aiter::pa_fwd_asm", [[32, 8, 64], VECTOR, VECTOR], {}, POOLED, BR),
    (
        "aiter::pa_decode_gluon",
        [[32, 8, 64], [32, 8, 64], VECTOR, VECTOR],
        {19: "128"},
        POOLED,
        {"mask": "window", "window_size": 128.0},
    ),
    (
        "vllm::unified_attention_with_output",
        [[32, 8, 64], [32, 2, 64], [32, 2, 64], [32, 8, 64]],
        {},
        POOLED,
        {"packed": True, "mask_source": "family", **BR},
    ),
    ("vllm::unified_attention", [[32, 8, 64], [32, 2, 64], [32, 2, 64]], {}, POOLED, BR),
    (
        "sglang::unified_attention_with_output",
        [[32, 512], [32, 2, 64], [32, 2, 64], [32, 512]],
        {},
        POOLED,
        BR,
    ),
    (
        "aiter::mla_decode_fwd",
        [[32, 16, 576], [1000, 1, 1, 576]],
        {},
        (1.0, 32.0, None, 16.0, 1.0, 576.0, 512.0),
        {"latent": True},
    ),
    (
        "sgl_kernel::cutlass_mla_decode",
        [[32, 16, 512], [32, 16, 512], [32, 16, 64], [1000, 128, 576]],
        {},
        (1.0, 32.0, None, 16.0, 1.0, 576.0, 512.0),
        {"latent": True},
    ),
    (
        "_C::sm100_cutlass_mla_decode",
        [[], [], [32, 16, 512], [32, 16, 64], [1000, 128, 576]],
        {},
        (1.0, 32.0, None, 16.0, 1.0, 576.0, 512.0),
        {"latent": True},
    ),
    (
        "sgl_kernel::fwd_kvcache_mla",
        [[32, 2, 16, 576], [1000, 64, 1, 576], *[[]] * 8, [32, 2, 2048]],
        {2: "512", 6: "True"},
        (1.0, 64.0, None, 16.0, 1.0, 576.0, 512.0),
        {"mask": "topk", "top_k": 2048.0, "n_seqs": 32.0, "max_q": 2.0},
    ),
    (
        "sglang_profiler::tilelang_kernel_tilelang_sparse_fwd_3",
        [[32, 16, 576], [9000, 1, 576], [32, 1, 2048]],
        {4: "256"},
        (1.0, 32.0, None, 16.0, 1.0, 576.0, 256.0),
        {"mask": "topk", "top_k": 2048.0},
    ),
    (
        "_flashmla_C::fwd_kvcache_mla",
        [[32, 1, 16, 576], [1000, 64, 1, 576]],
        {3: "512", 7: "True"},
        (1.0, 32.0, None, 16.0, 1.0, 576.0, 512.0),
        BR,
    ),
    (
        "pseudo_mla_prefill_fwd",
        [[400, 16, 192], [400, 16, 192], [400, 16, 128]],
        {},
        (1.0, 400.0, 400.0, 16.0, 16.0, 192.0, 128.0),
        {"latent": False, **BR},
    ),
    # Query, key and value of 16 heads of 128, and 32 of the value.
    (
        "vllm::gdn_attention_core",
        [[40, 8192], [40, 32], [40, 32], [40, 32, 128]],
        {},
        (1.0, 40.0, None, 16.0, 32.0, 128.0, 128.0),
        {"implementation": "linear"},
    ),
    (
        "sglang::store_cache",
        [[32, 1024], [32, 1024], [8358, 1024], [8358, 1024]],
        {},
        (1.0, 32.0, 32.0, 1.0, 1.0, 1024.0, 1024.0),
        {"implementation": "cache"},
    ),
    (
        "_C_cache_ops::reshape_and_cache_flash",
        [[32, 2, 64], [32, 2, 64], *PAGES],
        {},
        (1.0, 32.0, 32.0, 2.0, 2.0, 64.0, 64.0),
        {"implementation": "cache"},
    ),
    (
        "_C_cache_ops::concat_and_cache_mla",
        [[32, 512], [32, 64], [1000, 16, 576]],
        {},
        (1.0, 32.0, 32.0, 1.0, 1.0, 512.0, 64.0),
        {"implementation": "cache"},
    ),
    ("xformers::efficient_attention_forward_cutlass", BNHD, {9: "1"}, DENSE, TL),
    # Two groups of four heads that share a key.
    ("xformers::efficient_attention_forward_ck", [[2, 100, 2, 4, 64]] * 3, {9: "0"}, DENSE, FULL),
    (
        "xformers_flash::flash_fwd",
        [*TND, CU, CU],
        {6: "300", 7: "310", 10: "True"},
        PACKED,
        {**VARLEN, **BR},
    ),
    (
        "xformers_flash::flash_bwd",
        [[], *four(2, 100, 8, 64, 5)],
        {13: "True"},
        DENSE,
        {**BR, **GRAD},
    ),
    (
        "sageattention::qk_int8_sv_f16_accum_f32_attn",
        four(2, 8, 100, 64, 4),
        {6: "1", 7: "0"},
        DENSE,
        FULL,
    ),
    (
        "sageattention_sm89::qk_int8_sv_f8_accum_f32_fuse_v_scale_attn",
        four(2, 100, 8, 64, 4),
        {7: "0", 8: "1"},
        DENSE,
        BR,
    ),
    ("EvoformerAttention", [[2, 3, 100, 8, 64]] * 3, {}, (6.0, *DENSE[1:]), FULL),
    ("triton_tem_fused_flex_attention_0", BHND, {}, DENSE, {"library": "FlexAttention"}),
    ("flex_attention", BHND, {}, DENSE, {"mask": "unknown"}),
]


@pytest.mark.parametrize("rule", operator_rules(), ids=lambda rule: str(rule.fields["family"]))
def test_a_rule_wins_its_examples(rule: Rule) -> None:
    for name in rule.examples:
        first = next(one for one in operator_rules() if re.fullmatch(one.pattern, name))
        assert first is rule, name


@pytest.mark.parametrize("rule", kernel_rules(), ids=lambda rule: str(rule.fields["rule"]))
def test_a_kernel_rule_wins_its_examples(rule: Rule) -> None:
    for name in rule.examples:
        first = next(one for one in kernel_rules() if re.search(one.pattern, name))
        assert first is rule, name


@pytest.mark.parametrize(
    "name",
    [
        "aten::_fused_sdp_choice",
        "aten::softmax",
        "aten::_softmax",
        "aten::bmm",
        "aiter::get_mla_metadata_v1",
        "vllm::unified_kv_cache_update",
        "sgl_kernel::merge_state_v2",
        "CompiledFunctionBackward",
        "attn(F)",
    ],
)
def test_what_is_no_attention_has_no_rule(name: str) -> None:
    assert not any(re.fullmatch(rule.pattern, name) for rule in operator_rules())


def test_each_family_reads_its_own_arguments(analyse: Analyse, tmp_path: Path) -> None:
    host = Host()
    for name, dims, scalars, _, _ in FAMILIES:
        host.run(host.operator(name, "some_kernel", dims=dims, scalars=scalars))
    calls = attention_calls(host, analyse, tmp_path)
    assert len(calls) == len(FAMILIES)
    for call, (name, _, _, expected, more) in zip(calls, FAMILIES, strict=True):
        found = {key: call[key] for key in more}
        assert (sizes(call), found) == (expected, more), name
        assert call["shape_source"] == "operator" and call["problem"] is None, name
        assert call["evidence"] == "operator" and call["n_activities"] == 1, name
        assert call["operator"] == re.sub(r"(?<=^sglang_profiler::)(.*)_\d+$", r"\1", name)


def test_of_nested_operators_the_outermost_with_arguments_is_the_call(
    analyse: Analyse, tmp_path: Path
) -> None:
    host = Host()
    o = host.operator
    inner = o("aten::_flash_attention_forward", FLASH, dims=BNHD, scalars={8: "True"})
    host.run(
        o(
            "aten::scaled_dot_product_attention",
            o("aten::_fused_sdp_choice"),
            "copy_kernel",
            o(A + "flash_attention", "fill_kernel", inner, dims=BHND, scalars={4: "True"}),
            dims=BHND,
        )
    )
    # Its own backward, below names that autograd gives it.
    host.run(
        o(
            "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0",
            o(
                "ScaledDotProductFlashAttentionBackward0",
                o(A + "flash_attention_backward", FLASH_BACKWARD, dims=four(2, 8, 100, 64, 5)),
            ),
        )
    )
    host.run(
        o(
            "vllm::unified_attention_with_output",
            o("_C_cache_ops::reshape_and_cache_flash", "write_kernel", dims=[[32, 2, 64]] * 2),
            o("_vllm_fa3_C::fwd", FLASH, "combine_kernel", dims=[[32, 8, 64], *PAGES]),
            dims=[[32, 8, 64], [32, 2, 64], [32, 2, 64], [32, 8, 64]],
        )
    )
    # A nested tensor has no shape of its own; what runs it has.
    host.run(
        o(
            A + "flash_attention",
            o("aten::_flash_attention_forward", FLASH, dims=[*TND, CU, CU]),
            dims=[[], [], []],
        )
    )
    found = [
        (c["operator"], c["n_activities"], c["direction"])
        for c in attention_calls(host, analyse, tmp_path)
    ]
    assert found == [
        (A + "flash_attention", 2, "fwd"),
        (A + "flash_attention_backward", 1, "bwd"),
        ("vllm::unified_attention_with_output", 3, "fwd"),
        ("aten::_flash_attention_forward", 1, "fwd"),
    ]


def test_what_a_view_repeats_is_in_memory_once(analyse: Analyse, tmp_path: Path) -> None:
    host = Host()
    q, wide = [6400, 6400, 64, 1], [6400, 0, 64, 1]
    for strides in (
        [q, wide, wide, [0, 0, 100, 1]],
        [q, q, q, [0, 0, 0, 1]],
        [q, q, q, [1, 1, 1, 1]],
    ):
        host.run(
            host.operator(
                A + "efficient_attention",
                "some_kernel",
                dims=[*BHND, [2, 8, 100, 100]],
                types={3: "float"},
                scalars={6: "False"},
                strides=strides,
            )
        )
    groups = [[2, 100, 2, 4, 64]] * 3
    host.run(
        host.operator(
            "xformers::efficient_attention_forward_cutlass",
            "some_kernel",
            dims=groups,
            strides=[[51200, 512, 256, 64, 1], [12800, 128, 64, 0, 1], [12800, 128, 64, 0, 1]],
        )
    )
    # A batch that is repeated is no head.
    host.run(
        host.operator(
            A + "flash_attention", "some_kernel", dims=BHND, strides=[[0, 6400, 64, 1]] * 3
        )
    )
    calls = attention_calls(host, analyse, tmp_path)
    assert [c["h_kv"] for c in calls] == [1, 8, 8, 2, 8]
    assert [c["bias_elements"] for c in calls] == [10000, 100, 160000, 0, 0]
    assert [c["bias_dtype"] for c in calls] == ["fp32"] * 3 + [None] * 2


def test_types_are_of_tensors_and_of_the_cache(analyse: Analyse, tmp_path: Path) -> None:
    host = Host()
    new = [[32, 8, 64], [32, 2, 64], [32, 2, 64], [32, 8, 64]]
    host.run(
        host.operator(
            A + "flash_attention", "some_kernel", dims=BHND, types=dict.fromkeys(range(3), FP16)
        ),
        host.operator(
            "vllm::unified_attention_with_output", "some_kernel", dims=new, types={0: FP8, 3: FP16}
        ),
        *(
            host.operator(
                "_rocm_C::paged_attention",
                "some_kernel",
                dims=[[32, 8, 64], [], [], [], [32, 8, 64], VECTOR, VECTOR],
                types={5: "unsigned char"},
                scalars={15: text},
            )
            for text in ('"fp8_e4m3"', '"auto"')
        ),
        host.operator(
            "sageattention::qk_int8_sv_f16_accum_f32_attn",
            "some_kernel",
            dims=four(2, 8, 100, 64, 4),
            types={0: "signed char", 1: "signed char", 3: FP16},
        ),
    )
    # The kernel that writes the cache, and the one that reads it, know better.
    host.run(
        host.operator(
            "vllm::unified_attention_with_output",
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
            "(vllm::Fp8KVCacheDataType)1>(x)",
            "kernel_unified_attention_2d",
            dims=new,
        )
    )
    calls = attention_calls(host, analyse, tmp_path)
    assert [(c["q_dtype"], c["kv_dtype"], c["o_dtype"], c["dtype_source"]) for c in calls] == [
        ("fp16", "fp16", "fp16", "operator"),
        ("fp8_e4m3", "bf16", "fp16", "operator"),
        ("bf16", "fp8_e4m3", "bf16", "operator"),
        ("bf16", "int8", "bf16", "operator"),
        ("int8", "int8", "fp16", "operator"),
        ("bf16", "fp8_e4m3", "bf16", "kernel name"),
    ]


def test_a_latent_cache_is_expanded_for_prefill(analyse: Analyse, tmp_path: Path) -> None:
    dims = [[32, 16, 192], [32, 512], [32, 1, 64], [32, 2048]]
    mla = "void flash::flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8>>(x)"
    host = Host()
    for kernel in (mla, FLASH):
        host.run(
            host.operator("vllm::unified_mla_attention_with_output", "gemm", kernel, dims=dims)
        )
    decode, prefill = attention_calls(host, analyse, tmp_path)
    assert (sizes(decode), decode["latent"]) == ((1, 32, None, 16, 1, 576, 512), True)
    assert (sizes(prefill), prefill["latent"]) == ((1, 32, None, 16, 16, 192, 128), False)


def test_a_backward_without_shapes_has_those_of_its_forward(
    analyse: Analyse, tmp_path: Path
) -> None:
    host = Host()
    o = host.operator
    # The forward's number is that of what is around it; so is the backward's.
    for step, heads in enumerate((8, 4)):
        host.run(
            o(
                "FlashAttnFunc",
                o(
                    "flash_attn::_flash_attn_forward",
                    FLASH,
                    dims=four(2, 100, heads, 64),
                    scalars={5: "True"},
                    types=dict.fromkeys(range(3), FP16),
                ),
                sequence=40 + step,
            )
        )
    for step in (1, 0):
        host.run(
            o(
                "autograd::engine::evaluate_function: FlashAttnFuncBackward",
                o("FlashAttnFuncBackward", FLASH_BACKWARD),
                sequence=40 + step,
            )
        )
    host.run(o("FlashAttnFuncBackward", FLASH_BACKWARD, sequence=99))
    *_, fewer, more, lost = attention_calls(host, analyse, tmp_path)
    assert [c["h_q"] for c in (fewer, more, lost)] == [4, 8, None]
    assert (fewer["mask"], fewer["q_dtype"], fewer["direction"]) == ("causal_br", "fp16", "bwd")
    assert fewer["problem"] is None
    assert lost["problem"] == "no shapes recorded: profile with record_shapes=True"


def test_an_unknown_operator_is_a_call_where_its_kernel_attends(
    analyse: Analyse, tmp_path: Path
) -> None:
    host = Host()
    o = host.operator
    grouped = [[2, 1000, 8, 64], [2, 1000, 2, 64], [2, 1000, 2, 128]]
    host.run(
        o("mylib::flash_attention_v9_fwd", FLASH, dims=grouped),
        o("mylib::flash_attention_v9_fwd", FLASH, dims=[[8, 8], *four(2, 8, 1000, 64)]),
        # Eight and nine: either may be heads.
        o("mylib::flash_attention_v9_fwd", FLASH, dims=four(2, 8, 9, 64)),
        o("mylib::flash_attention_v9_bwd", FLASH_BACKWARD, dims=four(2, 1000, 8, 64, 4)),
        o("mylib::flash_attention_v9_fwd", FLASH, dims=[*TND, CU], types={3: "int"}),
        o("mylib::attention_mask_prepare", "some_kernel", dims=BHND),
    )
    calls = attention_calls(host, analyse, tmp_path)
    assert [sizes(c) for c in calls] == [
        (2, 1000, 1000, 8, 2, 64, 128),
        (2, 1000, 1000, 8, 8, 64, 64),
        (None,) * 7,
        (2, 1000, 1000, 8, 8, 64, 64),
        PACKED,
    ]
    assert calls[2]["problem"].startswith("the recorded shapes do not tell")
    assert [c["packed"] for c in calls] == [False, False, False, False, True]


def test_odd_arguments_are_text(analyse: Analyse, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    payload = f"__import__('os').system('touch {marker}')"
    odd: list[Any] = [
        *("text", None, [], [[1, 2], "x"], [None, 8, 100, 64], ["a", "b", "c", "d"]),
        *([1e400 if False else "1e400", 8, 100, 64], [[[[2]]]], {"a": 1}, 7, [-2, 8, 100, 64]),
        [2**62, 2**62, 2**62, 2**62],
    ]
    host = Host()
    for dims in odd:
        event = host.operator(A + "flash_attention", "some_kernel")
        event.args.update({"Input Dims": [dims, dims, dims], "Concrete Inputs": [payload] * 7})
        host.run(event)
    event = host.operator(A + "flash_attention", "some_kernel")
    event.args.update({"Input Dims": payload, "Input type": {}, "Concrete Inputs": 5})
    host.run(event)
    calls = attention_calls(host, analyse, tmp_path)
    assert len(calls) == len(odd) + 1
    assert not marker.exists()
    assert all(call["problem"] for call in calls if call["h_q"] is None)
    assert {call["mask"] for call in calls} == {"dense"}


SHIPPED = {
    "hf_vit_nsfw_h100": (A + "flash_attention", 12, (4, 197, 197, 12, 12, 64, 64), "dense"),
    "hf_qwen1_5_0_5b_h100": (
        A + "flash_attention",
        24,
        (16, 559, 559, 16, 16, 64, 64),
        "causal_tl",
    ),
    "hf_bert_small_h100": (A + "flash_attention", 4, (1, 141, 141, 8, 8, 64, 64), "dense"),
    "hf_bert_small_mi300x": (A + "flash_attention", 4, (1, 141, 141, 8, 8, 64, 64), "dense"),
    "torch_compile_triton": (A + "flash_attention", 1, (8, 4096, 4096, 16, 16, 128, 128), "dense"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_real_trace_has_the_calls_and_times_that_are_known(
    shared: Shared, analyse: Analyse, name: str
) -> None:
    operator, count, shape, mask = SHIPPED[name]
    (row,) = oracle(shared, name, operator)
    found = analyse(shared(f"traces/{name}.json.gz"))
    calls = found.rows("from attention_calls where evidence = 'operator'")
    assert {(c["operator"], sizes(c), c["mask"]) for c in calls} == {(operator, shape, mask)}
    assert len(calls) == count == row["count"]
    assert all(json.loads(c["input_dims"]) == row["input_dims"] for c in calls)
    assert sum(c["busy_ns"] for c in calls) / 1e3 == pytest.approx(
        row["kernel_time_sum_us"], abs=0.1
    )


def test_a_capture_tells_the_operators_of_a_replay(shared: Shared, analyse: Analyse) -> None:
    capture = analyse(shared("traces/sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz")).trace_id
    name = "sglang_qwen3_8b_decode_mi300x"
    found = analyse(shared(f"traces/{name}.json.gz"), capture=capture)
    calls = found.rows("from attention_calls")
    for operator, shape, n_activities in (
        ("sglang_profiler::attention_paged_attention_ragged", (1, 32, None, 32, 8, 128, 128), 2),
        ("sglang::store_cache", (1, 32, 32, 1, 1, 1024, 1024), 1),
    ):
        (row,) = oracle(shared, name, operator)
        own = [c for c in calls if c["operator"] == operator]
        assert len(own) == row["count"] == 36
        assert {(sizes(c), c["n_activities"]) for c in own} == {(shape, n_activities)}
        assert {c["evidence"] for c in own} == {c["shape_source"] for c in own} == {"capture"}
        time_us = sum(c["busy_ns"] for c in own) / 1e3
        assert time_us == pytest.approx(row["kernel_time_sum_us"], abs=0.1)
    assert len(calls) == 72


def test_layers_of_a_serving_trace_differ_by_their_kernels(
    shared: Shared, analyse: Analyse
) -> None:
    name = "vllm_gpt_oss_120b_prefill_b200"
    operator = "vllm::unified_attention_with_output"
    (row,) = oracle(shared, name, operator)
    calls = analyse(shared(f"traces/{name}.json.gz")).rows("from attention_calls order by call_no")
    assert len(calls) == row["count"] == 36
    assert [c["mask"] for c in calls] == ["window", "causal_br"] * 18
    assert {sizes(c) for c in calls} == {(1, 888, None, 8, 1, 64, 64)}
    assert {(c["q_dtype"], c["kv_dtype"], c["o_dtype"]) for c in calls} == {
        ("fp8_e4m3", "fp8_e4m3", "bf16")
    }
    assert sum(c["busy_ns"] for c in calls) / 1e3 == pytest.approx(
        row["kernel_time_sum_us"], abs=0.1
    )


def test_training_without_shapes_says_so(shared: Shared, analyse: Analyse) -> None:
    calls = analyse(shared("traces/deepseek_train_h800.json.gz")).rows("from attention_calls")
    # Projections run inside of them too; the time that attends is apart.
    assert sorted((c["operator"], c["direction"], c["n_activities"]) for c in calls) == [
        *[("RopeLoraFlashAttnVarlenFunc", "fwd", 16)] * 4,
        *[("RopeLoraFlashAttnVarlenFuncBackward", "bwd", 39)] * 4,
    ]
    assert all(0 < c["core_ns"] < c["busy_ns"] for c in calls)
    assert {c["problem"] for c in calls} == {"no shapes recorded: profile with record_shapes=True"}


def oracle(shared: Shared, name: str, operator: str) -> list[dict[str, Any]]:
    rows = json.loads(shared("facts/attention/oracle.json").read_text())["rows"]
    return [
        row
        for row in rows
        if row["trace"] == f"traces/{name}.json.gz"
        and row["op"] == operator
        and row["level"] == "unified_perf_summary"
    ]
