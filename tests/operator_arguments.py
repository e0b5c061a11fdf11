"""Arguments of operators of attention as profilers record them, and the sizes that they tell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conftest import Analyse
from host_made import Host

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
