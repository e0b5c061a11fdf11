"""Universal categories and simplified names, matched by DuckDB as the product matches them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from trace_sql.literal import sql_string
from trace_sql.profile import CategoryRule, NameRule, Profile, load_profiles

FACTS = Path(__file__).resolve().parents[1] / ".." / "shared" / "facts" / "models" / "kernels.csv"


def winners(rules: Iterable[CategoryRule], names: Iterable[str]) -> dict[str, int]:
    """Return the index of the rule that wins each name, -1 where none does."""
    cases = " ".join(
        f"WHEN regexp_matches(name, {sql_string(rule.pattern)}) THEN {index}"
        for index, rule in enumerate(rules)
    )
    return ask(f"SELECT name, CASE {cases} ELSE -1 END FROM names", names)


def simplified(profile: Profile, names: Iterable[str]) -> dict[str, str]:
    """Return the simplified name of each raw name."""
    cases = " ".join(
        f"WHEN regexp_matches(name, {sql_string(rule.pattern)}) THEN "
        f"regexp_replace(name, {sql_string(rule.pattern)}, {sql_string(rule.replace)})"
        for rule in profile.resolved_names
    )
    text = f"CASE {cases} ELSE name END"
    for rule in profile.resolved_name_cleanups:
        text = (
            f"regexp_replace({text}, {sql_string(rule.pattern)}, {sql_string(rule.replace)}, 'g')"
        )
    return ask(f"SELECT name, {text} FROM names", names)


def ask(question: str, names: Iterable[str]) -> dict[str, Any]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE names AS SELECT unnest(?) AS name", [list(names)])
        return dict(connection.execute(question).fetchall())


@pytest.fixture(scope="module")
def kernels() -> Profile:
    return load_profiles()["kernels"]


@pytest.fixture(scope="module")
def own(kernels: Profile) -> dict[str, str]:
    """Return the category of every name of this module, asked once."""
    return categories(kernels, [*TRAPS, *(name for names in UNSEEN.values() for name in names)])


def facts() -> dict[str, str]:
    if not FACTS.exists():
        pytest.skip(f"kernel names are not at {FACTS}")
    with FACTS.open(newline="") as file:
        return {row["kernel_name"]: row["category"] for row in csv.DictReader(file)}


def categories(kernels: Profile, names: Iterable[str]) -> dict[str, str]:
    rules = kernels.resolved_categories
    found = winners(rules, names)
    return {name: rules[index].name if index >= 0 else "other" for name, index in found.items()}


def test_every_known_kernel_has_its_category(kernels: Profile) -> None:
    expected = facts()
    found = categories(kernels, expected)
    wrong = {
        name: (found[name], category)
        for name, category in expected.items()
        if found[name] != category
    }
    assert wrong == {}
    assert len(expected) > 500


def test_python_reads_the_rules_alike(kernels: Profile, own: dict[str, str]) -> None:
    """The same rules walked by Python's own engine: a check on the SQL, not on the rules."""
    patterns = [(re.compile(rule.pattern), rule.name) for rule in kernels.resolved_categories]
    by_hand = {
        name: next((category for pattern, category in patterns if pattern.search(name)), "other")
        for name in own
    }
    assert own == by_hand


# Names of the same families that no rule was written from.
UNSEEN: dict[str, list[str]] = {
    "activation": [
        "swiglu_oai_kernel",
        "_silu_and_mul_kernel",
        "triton_poi_fused_mul_silu_1",
    ],
    "attention": [
        "void flash::flash_fwd_splitkv_combine_kernel<>",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<>>",
        "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u>",
        "void flashinfer::SinglePrefillWithKVCacheKernel<>",
        "void vllm::paged_attention_v2_kernel<>",
        "kernel_paged_attention_2d",
        "_ZN5aiter39pa_bf16_noquant_gqa8_1tg_4w_mtp0_msk0E",
        "_ZN7ck_tile6kentryILi256ENS_13FmhaFwdKernelINS_",
        "_ZN7ck_tile6kentryILi2ENS_27FmhaFwdSplitKVCombineKernelI",
        "_ZN5aiter26fmha_bwd_hd128_bf16_a32_psskE",
        "attn_fwd.kd",
        "_attn_fwd",
        "_bwd_kernel_dkdv",
        "void sglang::sage::qk_int_sv_f8_attn_kernel",
        "kernel_mha_masked",
        "void mmha::masked_multihead_attention_kernel<>",
    ],
    "comm": [
        "void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)",
        "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "rcclGenericKernel",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(...)",
        "two_shot_all_reduce_kernel",
        "mscclpp::allreduce7",
        "mori::moe::EpDispatchIntraNodeKernel_bf16",
        "void tensorrt_llm::kernels::mnnvl_throughput::moeA2ADispatchKernel",
    ],
    "elementwise": [
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>",
        "triton_poi_fused_add_mul_3",
        "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>",
    ],
    "embedding": [
        "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16>",
        "_vocab_parallel_embedding_kernel",
        "triton_poi_fused_embedding_0",
    ],
    "gemm": [
        "void marlin::Marlin<__half, 256>",
    ],
    "gemm_bf16": [
        "_ZN5aiter36bf16gemm_fp32bf16_tn_32x64_splitk_cleanE",
        "_gemm_a16_w16_kernel",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn",
        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64",
        "void dsv3_router_gemm_kernel<>",
        "bf16gemm_splitk_kernel",
    ],
    "gemm_fp16": [
        "nvjet_hsh_64x8_64x16_1x1_h_bz_TNT",
        "Cijk_Alik_Bljk_HHS_BH_Bias_HAS_SAV_UserArgs_MT64x64x128_MI16x16x1_SN",
        "ampere_fp16_s1688gemm_fp16_128x64",
        "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64",
        "turing_h1688gemm_128x128_tn",
    ],
    "gemm_fp32": [
        "nvjet_sm100_tss_128x128_64x6_2x1_v_bz_TNN",
        "nvjet_hss_128x8_64x12_4x1_v_bz_TNT",
        "Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>",
    ],
    "gemm_fp4": [
        "_gemm_afp4wfp4_kernel",
        "nvjet_sm100_ootst_128x128",
    ],
    "gemm_fp8": [
        "nvjet_qqtst_128x256_128x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAB_SAV_UserArgs_MT128x128x128_MI16x16x1_SN",
        "Cijk_Alik_Bljk_F8B8BS_BH_MT64x64x64",
        "_w8a8_block_fp8_matmul",
        "_gemm_a8w8_blockscale_kernel",
        "void vllm::cutlass_scaled_mm_sm90_fp8",
    ],
    "gemm_int8": [
        "Cijk_Alik_Bljk_I8II_BH_MT64x64x64",
        "void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_128x128_64x3_tn_align16>",
    ],
    "gemm_tf32": [
        "Cijk_Alik_Bljk_S_MX_B_Bias_HA_S_SAV_UserArgs_MT64x16x16",
        "ampere_sgemm_tf32",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64",
    ],
    "hadamard": [
        "hadamard_transform_kernel",
    ],
    "indexer": [
        "void vllm::topKPerRowDecode<512, true>",
        "_fp8_mqa_logits_kernel",
        "deepgemm_fp8_paged_mqa_logits_stage1",
        "void deep_gemm::sm100_fp8_mqa_logits<32u, 128u>",
    ],
    "kv_cache": [
        "fuse_qk_rope_concat_and_cache_mla_per_head_kernel",
        "void vllm::concat_and_cache_mla_kernel<>",
        "_fused_qk_rope_reshape_and_cache_kernel",
        "void sglang::transfer_kernel_impl_kv_cache",
        "copy_all_layer_kv_cache_tiled",
        "set_kv_buffer_kernel",
        "void vllm::cp_gather_cache<>",
    ],
    "linear_attention": [
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        "chunk_scaled_dot_kkt_fwd_kernel",
        "merge_16x16_to_64x64_inverse_kernel",
        "solve_tril_16x16_kernel",
        "_selective_scan_update_kernel",
        "_mamba_chunk_scan_fwd",
        "_chunk_cumsum_fwd_kernel",
        "_bmm_chunk_fwd_kernel",
        "fused_gdn_gating_kernel",
        "fused_kda_gate_kernel",
        "recompute_w_u_fwd_kernel",
        "prepare_wy_repr_bwd_kernel",
        "kda_gate_chunk_cumsum_vector_kernel",
        "fused_qkvzba_split_reshape_cat_kernel",
        "_causal_conv1d_fwd_kernel",
        "void causal_conv1d::update",
    ],
    "memory": [
        "Memcpy PtoP (Device -> Device)",
        "Memset (Unknown)",
        "void at::native::triu_tril_kernel<float>",
        "__amd_rocclr_fillBufferAligned",
        "void at_cuda_detail::cub::DeviceScanKernel<>",
    ],
    "mla": [
        "void aiter::kn_mla_reduce_v1_ps<128,32,64>",
        "_ZN5aiter40mla_pfl_qh192_vh128_m32x8_n128x1_causal1E",
        "fmhaSm100aKernel_QkvE4m3OBfloat16HQk576HV512HVPerCta256PagedKvDenseP64MultiCtasKv",
        "void flash_fwd_splitkv_mla_combine_kernel<>",
    ],
    "moe": [
        "void ck::kernel_moe_mxgemm_2lds<ck::GridwiseMoeGemmMX>",
        "void ck::kernel_moe_gemm<ck::GridwiseMoeGemmBlockScale>",
        "mfma_moe1_silu_mul_kernel",
        "void vllm::moe::moe_reduction_kernel",
        "void tensorrt_llm::kernels::cutlass_kernels::finalizeMoeRoutingKernel<>",
        "void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<>",
        "_p_matmul_ogs_NNT_bf16xbf16xmxfp4",
        "invoke_fused_moe_kernel",
        "void marlin_moe_wna16::Marlin<>",
        "_fwd_kernel_ep_gather",
        "_ZN5aiter47fmoe_fp8_blockscale_g1u1_novs_silu_1tg_32x256E.kd",
        "fused_moe_kernel.kd",
        "silu_and_mul_masked_expert",
        "void moe::dev::permute::permuteKernel",
        "ck_tile::MoeFlatmmKernel",
    ],
    "moe_routing": [
        "_ZN7ck_tile6kentryILi1ENS_16MoeSortingKernelINS_17MoeSortingProblemE",
        "void vllm::moe::grouped_topk_fused_kernel<float>",
        "void moe_fused_gate_kernel<>",
        "kimi_k2_moe_fused_gate_kernel",
        "void aiter::grouped_topk_kernel<>",
        "_ZN5aiter18biased_grouped_topkE",
        "void moe::dev::routing::routingDeepSeek::routingMainKernel<>",
        "_compute_writeback_idx_kernel",
        "void vllm::moe::count_and_sort_expert_tokens_kernel<>",
        "_topk_softmax_kernel",
        "_expt_data_compute",
    ],
    "norm": [
        "void vllm::rms_norm_static_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>",
        "_layer_norm_fwd_1pass_kernel",
        "void flashinfer::norm::GemmaFusedAddRMSNormKernel<8u, __half>",
        "rms_norm_gated_kernel",
        "void at::native::(anonymous namespace)::cuApplyLayerNorm<float>",
        "_ZN7ck_tile6kentryILi256ENS_14Layernorm2dFwdI",
        "triton_per_fused__fused_rms_norm_0",
        "_rms_norm_tiled_onepass",
        "fused_qknorm_kernel",
    ],
    "quant": [
        "_ZN5aiter37dynamic_per_group_scaled_quant_kernelIDF16bE",
        "void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>",
        "void tensorrt_llm::kernels::quantize_with_block_size<>",
        "void cvt_fp16_to_fp4_kernel<>",
        "_per_token_group_quant_fp8",
        "triton_red_fused__to_copy_abs_amax_clamp_div_mul_0",
        "_dynamic_mxfp4_quant_kernel",
    ],
    "residual_mix": [
        "_mhc_fused_kernel",
        "_ihc_post_pre_rms_norm_stage2",
        "hc_head_fuse_tilelang_kernel",
        "mhc_fused_post_pre_fma_tilelang_kernel",
        "_hc_broadcast_kernel",
        "_combine_kernel",
        "attn_res_fused_tma_kernel",
        "_ZN5aiter23mhc_pre_big_fuse_kernelE",
        "hc_split_sinkhorn_kernel",
        "attn_res_fused_pull_rs_kernel",
    ],
    "rope": [
        "_ZN5aiter32kn_entry_2c_sbhd_cached_indirectE",
        "void aiter::kn_entry_2c_sbhd_cached_indirect_inplace<float>",
        "fused_qk_norm_rope_kernel",
        "_triton_mrope_forward",
        "_ZN5aiter15rope_cached_positions_2c_fwdE",
        "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel<>",
    ],
    "sampling": [
        "void aiter::mix_sample_outer_exponential_kernel<float>",
        "void at::native::mbtopk::gatherTopK<float, unsigned int, 1>",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<>",
        "_topk_topp_sampler_kernel",
        "sample_recovered_tokens_kernel",
        "void vllm::apply_repetition_penalties_kernel<float>",
        "VerifyTreeGreedy",
        "_gumbel_sample_kernel",
    ],
}


@pytest.mark.parametrize("category", UNSEEN)
def test_unseen_names_of_known_families(own: dict[str, str], category: str) -> None:
    assert {name: own[name] for name in UNSEEN[category] if own[name] != category} == {}


# Each name carries a word of another category.
TRAPS = {
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)": "kv_cache",
    "tensorrt_llm::kernels::quantize_with_block_size<x>(flashinfer::QuantizationSFLayout)": "quant",
    "sage_quant_kernel": "quant",
    "create_flashinfer_kv_indices_triton": "memory",
    "triton_poi_fused_addmm_gelu_view_15": "activation",
    "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10": "memory",
    "triton_red_fused__to_copy_add_addmm_as_strided_fmha_v3_fwd_mean_mul_rsqrt_view_24": "norm",
    "triton_poi_fused_constant_pad_nd_moe_forward_0": "memory",
    "triton_poi_fused_0": "embedding",
    "_combined_routing_memset": "moe_routing",
    "_finalize_matmul_scatter_bf16": "moe",
    "topk_transform_decode_kernel": "indexer",
    "flashinfer::sampling::TopKRenormProbKernel": "sampling",
    "_topk_forward": "moe_routing",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)": "comm",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "comm",
    "rmsNormLamport": "comm",
    "allreducePacket": "comm",
    "nvjet_tss_256x128_64x4_1x2_h_bz_coopA_TNT": "gemm_fp32",
    "deep_gemm::sm90_bf16_gemm_impl": "gemm_bf16",
    "deep_gemm::sm100_mqa_logits": "indexer",
    "deep_gemm::sm90_tf32_hc_prenorm_gemm_impl": "residual_mix",
    "deep_gemm::sm100_fp8_fp4_mega_moe_impl": "moe",
    "deep_gemm::transpose_and_pack_fp32_into_ue8m0": "quant",
    "silu_mul_fp8_quant_deep_gemm_kernel": "activation",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64>(x)": "gemm_bf16",
    "void at::native::launch_clamp_scalar<float>(x)": "elementwise",
    "flash::flash_fwd_splitkv_mla_combine_kernel": "mla",
    "l2norm_fwd_kernel": "norm",
    "fusedQKNormRopeKernel": "rope",
    "void my::property_kernel<float>(x)": "other",
    "some_new_kernel": "other",
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps(own: dict[str, str], name: str) -> None:
    assert own[name] == TRAPS[name]


def test_simplified_names_are_short_and_plain(kernels: Profile) -> None:
    names = [*facts(), *TRAPS, *(name for unseen in UNSEEN.values() for name in unseen)]
    found = simplified(kernels, names)
    assert {name for name in found.values() if len(name) > 60} == set()
    assert {name for name in found.values() if not name or name.startswith("void ")} == set()


def test_simplified_names_are_stable(kernels: Profile) -> None:
    """A simplified name is its own simplified name, template tags aside."""
    once = set(simplified(kernels, facts()).values())
    again = simplified(kernels, once)
    assert {name for name in once if again[name] != name and "<" not in name} == set()


def test_names_without_a_rule_stay(kernels: Profile) -> None:
    names = ["Memcpy DtoD (Device -> Device)", "Memset (Device)", "_topk_forward"]
    assert simplified(kernels, names) == {name: name for name in names}


def test_first_match_wins_and_cleanups_follow(kernels: Profile) -> None:
    rule = NameRule("^a+", "b", ())
    late = NameRule("^a", "never", ())
    cleanup = NameRule("b", "cc", ())
    profile = Profile(
        name="test",
        title="",
        confidence="source",
        source="",
        bases=(),
        architectures=(),
        model_types=(),
        slots=(),
        columns={},
        prologue_start=(),
        prologue_examples=(),
        prepare_kernels=(),
        prepare_examples=(),
        boundaries=(),
        categories=(),
        names=(rule, late),
        name_cleanups=(cleanup,),
    )
    assert simplified(profile, ["aab", "x"]) == {"aab": "cccc", "x": "x"}
