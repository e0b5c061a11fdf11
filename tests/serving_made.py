"""Steps of serving engines made request by request: their names, operators and kernels, and the
work that their requests ask for, counted pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operators_made import Op, op
from pair_counts import Sees, causal_br, keys, pairs

Requests = Sequence[tuple[int, int]]
"""Query and key tokens of each request."""

VLLM, MLA = "vllm::unified_attention_with_output", "vllm::unified_mla_attention_with_output"
WRITE = (
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, {}, (vllm::Fp8KVCacheDataType){}>(x)"
)
WRITE_LATENT = (
    "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16,"
    " (vllm::Fp8KVCacheDataType)0>(x)"
)
FLASH_3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
    "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >,"
    " cute::tuple<cute::C<128>, cute::C<128>, cute::C<{}> >, {}, cutlass::bfloat16_t, float,"
    " cutlass::arch::Sm90, true, false, false, true, true, false, false, false>>>>(x)"
)
FLASH_MLA = (
    "void flash::flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8,"
    " cutlass::bfloat16_t, cutlass::bfloat16_t, 512>, true, flash::SharedStorageMLA<x>>(y)"
)
BATCH_PREFILL = (
    "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmhaBatchPrefill"
    "PipelineQRKSVSAsyncINS_36BlockFmhaBatchPrefillPipelineProblemIDF16bDF16bDF16bffDF16bhfDF16bfDF"
    "16bNS_13TileFmhaShapeINS_8sequenceIJLi128ELi128ELi32ELi128ELi32ELi128EEEENS5_IJLi4ELi1EEEE"
)
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
PAGED = (
    "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16,"
    " (vllm::Fp8KVCacheDataType)0, __hip_bfloat16, 16, 128, 256, false, 4>(x)"
)
DECODE = [(1, 100)] * 3 + [(1, 60)] * 2
PREFILL = [(48, 48)]


def sums(requests: Requests) -> list[int]:
    return [
        sum(terms) for terms in zip(*((q, k, q * q, q * k) for q, k in requests), strict=True)
    ] or [0] * 4


def vllm_step(context: Requests, generation: Requests) -> str:
    words = ["(sq{}sk{}sqsq{}sqsk{})".format(*sums(requests)) for requests in (context, generation)]
    return (
        f"execute_{len(context) + len(generation)}_context_{len(context)}{words[0]}"
        f"_generation_{len(generation)}{words[1]}"
    )


def sglang_step(kind: str, requests: Requests) -> str:
    part, (sq, sk, sqsq, sqsk) = ("g" if kind == "DECODE" else "c"), sums(requests)
    tokens = f" toks={sq}" if kind != "DECODE" else ""
    told = f"{part}_sq={sq} {part}_sqsq={sqsq} {part}_sqsk={sqsk} {part}_sk={sk}"
    return f"step[{kind} bs={len(requests)}{tokens} {told}]"


def flops(
    requests: Requests, h: int, d: int, sees: Sees = causal_br, d_v: int | None = None
) -> int:
    return sum(2 * h * pairs(q, k, sees) * (d + (d_v or d)) for q, k in requests)


def moved(
    requests: Requests, h: int, width: int, kv_width: int, sees: Sees = causal_br, size: int = 2
) -> int:
    """Return the bytes of query and output, and of the keys and values that are seen."""
    tokens = sum(q for q, _ in requests)
    return tokens * h * width * 2 + sum(keys(q, k, sees) for q, k in requests) * kv_width * size


def engine(tokens: int, *inside: Any, h: int = 32, h_kv: int = 8, d: int = 128, **more: Any) -> Op:
    dims = [[tokens, heads, d] for heads in (h, h_kv, h_kv, h)]
    return op(VLLM, *inside, dims=dims, **more)


def flash_3(
    tokens: int, n: int, *kernels: Any, left: int = -1, cap: str = "0.", causal: bool = True
) -> Op:
    dims: list[list[int]] = [[]] * 15
    dims[:3] = [[tokens, 32, 128], [500, 16, 8, 128], [500, 16, 8, 128]]
    dims[6], dims[7], dims[11], dims[14] = [tokens, 32, 128], [n + 1], [n], [n, 20]
    scalars = {12: "48", 13: "100", 23: "0.08838", 24: str(causal), 25: str(left)}
    scalars |= {26: "0" if left >= 0 else "-1", 27: cap, 28: "True"}
    kernel = FLASH_3.format(128, 128)
    return op("_vllm_fa3_C::fwd", *(kernels or (kernel,)), dims=dims, scalars=scalars)


def latent(tokens: int, *inside: Any) -> Op:
    dims = [[tokens, 16, 192], [tokens, 512], [tokens, 1, 64], [tokens, 2048]]
    return op(MLA, WRITE_LATENT, *inside, dims=dims)


def expanded(tokens: int, causal: bool = True) -> Op:
    dims = [[tokens, 16, 192], [tokens, 16, 192], [tokens, 16, 128]]
    scalars = {12: str(tokens), 13: str(tokens), 24: str(causal), 25: "-1", 26: "-1", 27: "0."}
    return op("_vllm_fa3_C::fwd", FLASH_3.format(192, 128), dims=dims, scalars=scalars)


ABSORBED = op(
    "_flashmla_C::fwd_kvcache_mla",
    FLASH_MLA,
    "void flash::flash_fwd_mla_combine_kernel<cutlass::bfloat16_t, 512, 8, 32, 256>(x)",
    dims=[[5, 1, 16, 576], [100, 64, 1, 576]],
    scalars={3: "512", 7: "True"},
)
PROJECT = op("aten::mm", (GEMM, 20), dims=[[48, 512], [512, 4096]])
ABSORB = op("aten::bmm", (GEMM, 5), dims=[[16, 5, 128], [16, 128, 512]])
