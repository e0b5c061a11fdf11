"""Attention by kernel names: what a name tells, which kernels are one call, and its shape."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from conftest import SHARED
from host_made import ask

from trace_sql.attention_rules import Rule, kernel_rules
from trace_sql.macros import make_macros
from trace_sql.parameters import parameters
from trace_sql.profile import load_profiles
from trace_sql.store import Settings
from trace_sql.views import load_views, render

RULES = {str(rule.fields["rule"]): rule for rule in kernel_rules()}
TEMPLATE_VALUES = parameters("t", Settings()).values


def winner(name: str) -> str | None:
    """Return the first rule that matches, by Python's own patterns."""
    return next((key for key, rule in RULES.items() if re.search(rule.pattern, name)), None)


def told(names: Sequence[str], category: str = "other") -> dict[str, dict[str, Any]]:
    """Return what the views make of names of one category."""
    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute(
            "create table name_classes as"
            " select 't' as trace_id, unnest(?) as name, ?::varchar as category",
            [list(names), category],
        )
        for view in ("attention_words", "attention_names"):
            sql = render(load_views()[view], TEMPLATE_VALUES)
            make_macros(connection, sql, set())
            connection.execute(f"create table {view} as {sql}")
        result = connection.execute("from attention_names")
        columns = [column[0] for column in result.description]
        rows = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
    return {row["name"]: row for row in rows}


# Names.


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_wins_its_examples(rule: Rule) -> None:
    assert rule.examples
    assert {winner(example) for example in rule.examples} == {rule.fields["rule"]}


def test_a_rule_has_a_name_of_its_own_and_words_that_are_known() -> None:
    assert len(RULES) == len(kernel_rules())
    known = {
        "role": "core combine step kv_write plan quantize indexer softmax none",
        "implementation": "flash paged linear",
        "direction": "fwd bwd",
        "phase": "prefill decode",
        "mask": "causal window dense",
        "place": "before after",
    }
    for rule in RULES.values():
        for key, words in known.items():
            assert rule.fields.get(key, words.split()[0]) in words.split(), rule.fields
        if rule.fields["role"] == "core":
            assert {"implementation", "direction"} <= rule.fields.keys()
        if rule.fields["role"] in ("step", "quantize"):
            assert "place" in rule.fields


def test_the_engine_reads_patterns_as_python_does() -> None:
    examples = {example: key for key, rule in RULES.items() for example in rule.examples}
    found = told(list(examples))
    for name, key in examples.items():
        if RULES[key].fields["role"] == "none":
            assert name not in found
        else:
            assert found[name]["rule"] == key
            assert found[name]["role"] == RULES[key].fields["role"]


FLASH_2 = (
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{d}, 128, 64, 4,"
    " false, false, cutlass::{t}, pytorch_flash::Flash_kernel_traits<{d}, 128, 64, 4,"
    " cutlass::{t}> >, false, {flags}>(pytorch_flash::Flash_fwd_params)"
)
FLASH_3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
    "CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >,"
    " cute::tuple<cute::C<128>, cute::C<160>, cute::C<192> >, 128, cutlass::{t}, float,"
    " cutlass::arch::Sm90, {flags}, false, true, true>>>>"
)
TRT = "fmhaSm100aKernel_{types}H{sizes}{mask}VarSeqQ128Kv128Persistent{kind}"
NAMES: list[tuple[str, dict[str, Any]]] = [
    (
        FLASH_2.format(d=64, t="bfloat16_t", flags="true, false, false, false, true, false"),
        {"head_dim": 64, "head_dim_v": 64, "q_dtype": "bf16", "kv_dtype": "bf16", "mask": "causal"},
    ),
    (
        FLASH_2.format(d=128, t="half_t", flags="false, false, false, true, true, false, false"),
        {"head_dim": 128, "q_dtype": "fp16", "mask": "dense"},
    ),
    (
        FLASH_2.format(d=96, t="half_t", flags="false, true, false, true, true, false, false"),
        {"head_dim": 96, "mask": "window"},
    ),
    (
        FLASH_3.format(t="bfloat16_t", flags="true, false"),
        {"head_dim": 192, "head_dim_v": 128, "q_dtype": "bf16", "mask": "causal"},
    ),
    (
        FLASH_3.format(t="float_e4m3_t", flags="false, true"),
        {"q_dtype": "fp8_e4m3", "mask": "window"},
    ),
    (FLASH_3.format(t="half_t", flags="false, false"), {"q_dtype": "fp16", "mask": "dense"}),
    (
        TRT.format(types="QkvE4m3OBfloat16", sizes="64", mask="PagedKvCausalP16", kind="Context"),
        {
            **{"head_dim": 64, "page_size": 16, "mask": "causal", "phase": "prefill"},
            **{"q_dtype": "fp8_e4m3", "kv_dtype": "fp8_e4m3", "o_dtype": "bf16"},
        },
    ),
    (
        TRT.format(
            types="QBfloat16KvE4m3OBfloat16",
            sizes="128",
            mask="PagedKvSlidingOrChunkedCausalP32MultiCtasKv",
            kind="SwapsAbForGen",
        ),
        {
            **{"head_dim": 128, "page_size": 32, "mask": "window", "phase": "decode"},
            **{"q_dtype": "bf16", "kv_dtype": "fp8_e4m3", "o_dtype": "bf16"},
        },
    ),
    (
        TRT.format(
            types="QkvFp16OFp16",
            sizes="Qk576HV512HVPerCta256",
            mask="PagedKvDenseP64",
            kind="ForGen",
        ),
        {"head_dim": 576, "head_dim_v": 512, "page_size": 64, "q_dtype": "fp16", "mask": None},
    ),
    (
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char,"
        " (vllm::Fp8KVCacheDataType)2>(__nv_bfloat16 const*)",
        {"role": "kv_write", "q_dtype": "bf16", "kv_dtype": "fp8_e5m2"},
    ),
    (
        "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, unsigned char,"
        " (vllm::Fp8KVCacheDataType)1, __hip_bfloat16, 16, 64, 256, false, 8>(x)",
        {"head_dim": 64, "page_size": 16, "q_dtype": "bf16", "kv_dtype": "fp8_e4m3"},
    ),
    (
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40Block"
        "FmhaBatchPrefillPipelineProblemIDF16bDF16bDF16bffDF16bNS_13TileFmhaShapeINS_8sequence"
        "IJLi128ELi128ELi32ELi64ELi32ELi96EEEE",
        {"head_dim": 96, "head_dim_v": 64, "q_dtype": "bf16", "phase": "prefill"},
    ),
    (
        "_ZN5aiter32fmha_fwd_hd192_hd128_bf16_causalE",
        {"head_dim": 192, "head_dim_v": 128, "q_dtype": "bf16", "mask": "causal"},
    ),
    ("aiter::fmha_fwd_hd128_bf16_rtz", {"head_dim": 128, "mask": "dense", "library": "AITER"}),
    (
        "_ZN5aiter42pa_bf16_pertokenFp8_gqa10_1tg_4w_mtp3_msk1E",
        {"q_dtype": "bf16", "kv_dtype": "fp8_e4m3", "phase": "decode"},
    ),
    (
        "fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_192x128_causal_tma_ws_sm90_kernel",
        {"head_dim": 192, "head_dim_v": 128, "mask": "causal", "q_dtype": "bf16"},
    ),
    (
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<x>)",
        {"q_dtype": "fp32", "library": "CUTLASS memory-efficient"},
    ),
]


def test_a_name_tells_sizes_types_mask_and_phase() -> None:
    found = told([name for name, _ in NAMES])
    for name, expected in NAMES:
        assert {key: found[name][key] for key in expected} == expected, name


def test_a_kernel_of_no_rule_attends_where_its_category_says_so() -> None:
    found = told(["my_attention_bwd_kernel", "my_attention"], "attention")
    assert {name: (row["role"], row["direction"], row["rule"]) for name, row in found.items()} == {
        "my_attention_bwd_kernel": ("core", "bwd", None),
        "my_attention": ("core", "fwd", None),
    }
    assert told(["my_scan"], "linear_attention")["my_scan"]["implementation"] == "linear"
    assert not told(["my_gemm"], "gemm")


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
        "(anonymous namespace)::TensorListMetadata<2> >(x)",
        "cudnn_infer_ampere_scudnn_128x64_relu_fprop_small_nn_v1",
        "moe::dev::topk_softmax_kernel",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16>(float const*)",
        "_fwd_kernel_ep_gather",
        "_layer_norm_fwd_kernel",
        "fused_qk_norm_rope_kernel",
    ],
)
def test_a_name_that_only_looks_like_attention_is_none(name: str) -> None:
    assert name not in told([name])


def test_real_names_of_attention_are_known() -> None:
    path = SHARED / "facts" / "models" / "kernels.csv"
    if not path.exists():
        pytest.skip("the list of real kernel names lies beside the repository")
    kinds = ("attention", "mla", "linear_attention", "kv_cache", "indexer")
    with path.open(encoding="utf-8") as file:
        names = {row["kernel_name"] for row in csv.DictReader(file) if row["category"] in kinds}
    assert {name for name in names if winner(name) is None} <= {
        # Their categories tell what they do.
        "_triton_fused_store_flashmla_kernel",
        "sglang::dsa_gfx950::qk_rope::qk_rope_hadamard_quant_kernel",
    }
    assert {name.split("(")[0] for name in names if role(name) == "none"} <= {
        # They lay out queries and keys and do not attend.
        "concat_mla_k_kernel",
        "concat_mla_absorb_q_kernel",
        "sglang::dsa_gfx950::qk_rope::qk_rope_hadamard_quant_kernel",
    }


def role(name: str) -> str | None:
    rule = winner(name)
    return str(RULES[rule].fields["role"]) if rule else None


def test_examples_of_the_universal_rules_are_known() -> None:
    rules = load_profiles()["generic"].resolved_categories
    for category in ("attention", "mla", "linear_attention"):
        names = [name for rule in rules if rule.name == category for name in rule.examples]
        assert names
        roles = {row["role"] for row in told(names, category).values()}
        assert roles <= {"core", "combine", "step", "plan", "quantize"}


# Calls.

NORM, GEMM = "rms_norm_kernel", "ampere_bf16_gemm"
STREAMS: dict[str, tuple[list[str], list[tuple[str, int]]]] = {
    "split": (
        [GEMM, "flash_fwd_splitkv_kernel", "flash_fwd_splitkv_combine_kernel", GEMM]
        + ["flash_fwd_splitkv_kernel", "flash_fwd_splitkv_combine_kernel"],
        [("flash_2_splitkv", 2)] * 2,
    ),
    "flash backward": (
        ["flash_bwd_dot_do_o_kernel", "flash_bwd_dq_dk_dv_loop_kernel", "fill", "copy"]
        + ["flash_bwd_convert_dq_kernel", GEMM]
        + ["flash_bwd_dot_do_o_kernel", "flash_bwd_dq_dk_dv_loop_kernel"]
        + ["flash_bwd_convert_dq_kernel"],
        [("flash_2_backward", 3)] * 2,
    ),
    "aotriton backward": (
        ["bwd_preprocess", "bwd_kernel_dk_dv", "bwd_kernel_dq", "bwd_preprocess"]
        + ["bwd_kernel_dk_dv", "bwd_kernel_dq"],
        [("aotriton_backward", 3)] * 2,
    ),
    "recomputed": (
        ["bwd_preprocess", "attn_fwd", "bwd_kernel_dk_dv", "bwd_kernel_dq"],
        [("aotriton", 1), ("aotriton_backward", 3)],
    ),
    "in a row": (["attn_fwd"] * 3, [("aotriton", 1)] * 3),
    "cache": (
        [NORM, "reshape_and_cache_flash_kernel", "kernel_unified_attention_2d", NORM]
        + ["reshape_and_cache_flash_kernel", "kernel_unified_attention_3d", "reduce_segments"],
        [("kv_write", 1), ("triton_unified", 1), ("kv_write", 1), ("triton_unified_split", 2)],
    ),
    "linear": (
        ["_causal_conv1d_fwd_kernel", NORM, "chunk_local_cumsum_scalar_kernel"]
        + ["chunk_gated_delta_rule_fwd_kkt_solve_kernel", "_recompute_w_u_fwd_kernel"]
        + ["chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "chunk_fwd_kernel_o"],
        [("linear", 6)],
    ),
    # What finishes a call whose kernel the trace does not have is no call.
    "cut": (["reduce_segments", *[GEMM] * 20, "flash_bwd_convert_dq_kernel"], []),
}


def kernels(names: Sequence[str], stream: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            **{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream},
            **{"ts": 10_000 * stream + 10 * place, "dur": 5},
            "args": {"device": 0, "stream": stream, **more},
        }
        for place, name in enumerate(names)
    ]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[tuple[str, int]]]:
    """Return family and number of kernels of each call, by stream."""
    events = [
        event
        for stream, (names, _) in enumerate(STREAMS.values(), 1)
        for event in kernels(names, stream)
    ]
    rows = ask(
        tmp_path_factory.mktemp("grouped"),
        events,
        "select a.stream, c.family, count(*) as n, c.call_no"
        " from attention_calls as c join attention_activities as k using (trace_id, call_no)"
        " join activities as a on a.event_id = k.event_id group by all order by call_no",
    )
    found: dict[int, list[tuple[str, int]]] = {}
    for row in rows:
        found.setdefault(row["stream"], []).append((row["family"], row["n"]))
    return found


@pytest.mark.parametrize("case", STREAMS)
def test_kernels_of_one_computation_are_one_call(
    grouped: dict[int, list[tuple[str, int]]], case: str
) -> None:
    # A call stands where its first kernel stands.
    found = grouped.get(list(STREAMS).index(case) + 1, [])
    assert sorted(found) == sorted(STREAMS[case][1])


# Shapes.

SHAPE = "call_no, family, mask, window_size, h_q, h_kv, d_qk, d_v, latent, shape_source, problem"
SIZES = ("h_q", "h_kv", "d_qk", "d_v", "latent")
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    **{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4096},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16"},
}
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    **{"model_type": "deepseek_v3", "num_hidden_layers": 2, "hidden_size": 7168},
    **{"num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512},
    **{"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536},
    **{"n_routed_experts": 256, "num_experts_per_tok": 8, "torch_dtype": "bfloat16"},
}


def shapes(
    folder: Path, events: Sequence[dict[str, Any]], config: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    more = {"config": config} if config else {}
    return ask(folder, events, f"select {SHAPE} from attention_calls order by call_no", **more)


def test_without_a_config_a_call_says_what_would_tell(tmp_path: Path) -> None:
    [row] = shapes(tmp_path, kernels(["kernel_unified_attention_2d"], 1))
    assert (row["h_q"], row["d_qk"], row["shape_source"]) == (None, None, None)
    assert "--config" in row["problem"] and "record_shapes=True" in row["problem"]


def test_a_config_tells_heads_and_the_grid_those_of_the_rank(tmp_path: Path) -> None:
    events = [
        *kernels(["kernel_unified_attention_2d"], 1),
        *kernels(["kernel_unified_attention_2d"], 2, grid=[17, 2, 1]),
    ]
    whole, part = shapes(tmp_path, events, LLAMA)
    assert [whole[key] for key in SIZES] == [32, 8, 128, 128, False]
    assert [part[key] for key in SIZES] == [8, 2, 128, 128, False]
    assert (whole["shape_source"], whole["mask"], whole["problem"]) == ("config", "causal_br", None)


def test_name_and_grid_tell_a_shape_without_a_config(tmp_path: Path) -> None:
    name = (
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16,"
        " (vllm::Fp8KVCacheDataType)0, 1, 128, 256, false, 4, 1>"
    )
    [row] = shapes(tmp_path, kernels([name], 1, grid=[32, 5, 8]))
    assert [row[key] for key in SIZES] == [32, 8, 128, 128, False]
    assert (row["shape_source"], row["problem"]) == ("kernel name", None)


def test_compressed_keys_are_expanded_in_prefill(tmp_path: Path) -> None:
    decode = (
        "void flash::flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8,"
        " cutlass::bfloat16_t, cutlass::bfloat16_t, 512>, true>"
    )
    prefill = FLASH_3.format(t="bfloat16_t", flags="true, false")
    rows = shapes(tmp_path, kernels([decode, prefill], 1), DEEPSEEK)
    assert [[row[key] for key in SIZES] for row in rows] == [
        [128, 1, 576, 512, True],
        [128, 128, 192, 128, False],
    ]
