"""Attention of serving engines, operator by operator under step names: work counted pair by pair
from the requests that each step was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from operators_made import CALLS, FP8, FP16, Op, Tape, op
from pair_counts import dense, window
from serving_made import (
    ABSORB,
    ABSORBED,
    BATCH_PREFILL,
    DECODE,
    GEMM,
    PAGED,
    PREFILL,
    PROJECT,
    WRITE,
    engine,
    expanded,
    flash_3,
    flops,
    latent,
    moved,
    sglang_step,
    vllm_step,
)

Row = dict[str, Any]
# Step name, operator, FLOPs, bytes, and what else must hold.
Case = tuple[str, Op, float, float, dict[str, Any]]
BOTH = [*PREFILL, *DECODE]
TOKENS = sum(q for q, _ in BOTH)
WIDE = (16, 192 + 128, 16 * (192 + 128))
NARROW = (16, 576 + 512, 576)
CASES: dict[str, Case] = {
    "decode": (
        vllm_step([], DECODE),
        engine(5, WRITE.format("__nv_bfloat16", 0), flash_3(5, 5)),
        flops(DECODE, 32, 128),
        moved(DECODE, 32, 256, 8 * 256),
        {"phase": "decode", "library": "FlashAttention-3", "mask_source": "argument"},
    ),
    "mixed": (
        vllm_step(PREFILL, DECODE),
        engine(TOKENS, WRITE.format("__nv_bfloat16", 0), flash_3(TOKENS, 6)),
        flops(BOTH, 32, 128),
        moved(BOTH, 32, 256, 8 * 256),
        {"phase": "mixed", "ctx_tokens": 48.0, "gen_tokens": 5.0},
    ),
    "cache in fp8": (
        vllm_step([], DECODE),
        engine(5, WRITE.format("unsigned char", 1), "kernel_unified_attention_3d"),
        flops(DECODE, 32, 128),
        moved(DECODE, 32, 256, 8 * 256, size=1),
        {"kv_dtype": "fp8_e4m3", "library": "Triton"},
    ),
    # What the engine's operator does not say, the one that it calls does.
    "window told inside": (
        vllm_step([], [(1, 100)] * 5),
        engine(5, flash_3(5, 5, left=31)),
        flops([(1, 100)] * 5, 32, 128, window(32)),
        moved([(1, 100)] * 5, 32, 256, 8 * 256, window(32)),
        {"mask": "window", "window_size": 32.0, "mask_source": "argument"},
    ),
    "no mask told inside": (
        vllm_step([(40, 40)], []),
        engine(40, flash_3(40, 1, causal=False)),
        flops([(40, 40)], 32, 128, dense),
        moved([(40, 40)], 32, 256, 8 * 256),
        {"mask": "dense", "phase": "prefill"},
    ),
    # Its fork has a cap of the scores where others have chunks.
    "capped": (
        vllm_step([], DECODE),
        flash_3(5, 5, cap="50."),
        flops(DECODE, 32, 128),
        moved(DECODE, 32, 256, 8 * 256),
        {"mask": "causal_br", "implementation": "paged"},
    ),
    "rocm mixed": (
        vllm_step(PREFILL, DECODE),
        engine(
            TOKENS,
            "_fwd_kernel",
            op(
                "_rocm_C::paged_attention",
                PAGED,
                "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, 128, 128, 256, 3>(x)",
                dims=[[5, 32, 128], *[[5, 32, 8]] * 3, [5, 32, 128], [500, 8, 16, 16, 8]],
                scalars={7: "8", 14: '"auto"'},
            ),
        ),
        flops(BOTH, 32, 128),
        moved(BOTH, 32, 256, 8 * 256),
        {"phase": "mixed", "n_activities": 3},
    ),
    "batch prefill": (
        sglang_step("EXTEND", [(20, 50), (12, 12)]),
        op(
            "aiter::mha_batch_prefill",
            BATCH_PREFILL,
            dims=[[32, 32, 128], [83587, 8, 128], [83587, 8, 128], [3], [3], [62]],
            scalars={6: "20", 7: "50", 12: "True", 13: "-1", 14: "-1"},
        ),
        flops([(20, 50), (12, 12)], 32, 128),
        moved([(20, 50), (12, 12)], 32, 256, 8 * 256),
        {"phase": "prefill", "library": "AITER", "implementation": "paged"},
    ),
    # No step tells of it; of one request the longest length is the length.
    "one prefill": (
        "a range of another kind",
        op(
            "aiter::mha_batch_prefill",
            BATCH_PREFILL,
            dims=[[20, 32, 128], [83587, 8, 128], [83587, 8, 128], [2], [2], [62]],
            scalars={6: "20", 7: "50", 12: "True", 13: "-1", 14: "-1"},
        ),
        flops([(20, 50)], 32, 128),
        moved([(20, 50)], 32, 256, 8 * 256),
        {"phase": "prefill", "mask_assumption": None},
    ),
    "decode with a window": (
        sglang_step("DECODE", [(1, 100)] * 4),
        op(
            "aiter::pa_decode_gluon",
            "paged_attention_decode_v2_gluon_dot_kernel",
            dims=[[4, 64, 64], [4, 64, 64], [900, 8, 4, 16, 16], [900, 8, 64, 16]],
            scalars={19: "64"},
            types={2: "c10::Float8_e4m3fnuz", 3: "c10::Float8_e4m3fnuz"},
        ),
        flops([(1, 100)] * 4, 64, 64, window(64)),
        moved([(1, 100)] * 4, 64, 128, 8 * 128, window(64), size=1),
        {"mask": "window", "phase": "decode", "library": "AITER"},
    ),
    "latent prefill": (
        vllm_step(PREFILL, []),
        latent(48, PROJECT, expanded(48)),
        flops(PREFILL, 16, 192, d_v=128),
        moved(PREFILL, *WIDE),
        {"latent": False, "h_kv": 16.0, "phase": "prefill"},
    ),
    "latent decode": (
        vllm_step([], DECODE),
        latent(5, ABSORB, ABSORBED, ABSORB),
        flops(DECODE, 16, 576, d_v=512),
        moved(DECODE, *NARROW),
        {"latent": True, "h_kv": 1.0, "phase": "decode", "library": "FlashMLA"},
    ),
    # Prefill expands what decode reads as it is, in one call.
    "latent mixed": (
        vllm_step(PREFILL, DECODE),
        latent(TOKENS, PROJECT, expanded(48), ABSORB, ABSORBED, ABSORB),
        flops(PREFILL, 16, 192, d_v=128) + flops(DECODE, 16, 576, d_v=512),
        moved(PREFILL, *WIDE) + moved(DECODE, *NARROW),
        {"latent": True, "phase": "mixed", "ctx_flops": flops(PREFILL, 16, 192, d_v=128)},
    ),
    "latent with a cached prefix": (
        vllm_step([(16, 64)], []),
        latent(16, PROJECT, expanded(16), PROJECT, expanded(16, causal=False)),
        flops([(16, 64)], 16, 192, d_v=128),
        moved([(16, 64)], *WIDE),
        {"latent": False, "mask": "causal_br"},
    ),
    "aiter latent decode": (
        sglang_step("DECODE", DECODE),
        op(
            "aiter::mla_decode_fwd",
            "_ZN5aiter41mla_dec_stage1_bf16_a16w16_subQ16_mqa16E",
            dims=[[5, 16, 576], [900, 1, 1, 576]],
        ),
        flops(DECODE, 16, 576, d_v=512),
        moved(DECODE, *NARROW),
        {"latent": True, "phase": "decode", "library": "AITER"},
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Return the call of each case, by its name."""
    tape = Tape("NVIDIA H100 80GB HBM3")
    for step, operator, *_ in CASES.values():
        tape.step(step, operator)
    return dict(zip(CASES, tape.ask(tmp_path_factory.mktemp("serving"), CALLS), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_work_is_that_of_the_requests(found: dict[str, Row], case: str) -> None:
    *_, operations, size, more = CASES[case]
    call = found[case]
    assert call["work_problem"] is None
    assert {key: call[key] for key in more} == more
    if call["mask_assumption"] and "equal length" in call["mask_assumption"]:
        assert call["flops_lo"] <= operations <= call["flops_hi"]
    assert call["flops"] == pytest.approx(operations, rel=1e-9)
    assert call["bytes"] == pytest.approx(size, rel=1e-9)


# Without recorded shapes.

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    **{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4096},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16"},
}
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    **{"model_type": "deepseek_v3", "num_hidden_layers": 2, "hidden_size": 7168},
    **{"num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512},
    **{"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536},
    **{"n_routed_experts": 256, "num_experts_per_tok": 8, "torch_dtype": "bfloat16"},
}
FLASHINFER = "void flashinfer::BatchDecodeWithPagedKVCacheKernel<x>(y)"


@pytest.mark.parametrize(
    ("config", "cases"),
    [
        (LLAMA, ["decode", "mixed", "cache in fp8", "batch prefill"]),
        (DEEPSEEK, ["latent prefill", "latent decode", "latent mixed"]),
    ],
    ids=["llama", "deepseek"],
)
def test_a_config_tells_the_heads_that_were_not_recorded(
    tmp_path: Path, config: dict[str, Any], cases: list[str]
) -> None:
    tape = Tape("NVIDIA H100 80GB HBM3", shapes=False)
    for case in cases:
        tape.step(*CASES[case][:2])
    calls = tape.ask(tmp_path, CALLS, config=config)
    for call, case in zip(calls, cases, strict=True):
        *_, operations, size, more = CASES[case]
        assert (call["shape_source"], call["work_problem"]) == ("config", None), case
        assert call["phase"] == more.get("phase", "decode"), case
        assert (call["flops"], call["bytes"]) == (operations, size), case


@pytest.mark.parametrize(
    ("ratio", "mask", "seen"),
    [
        (0, "window", 128),
        # Of 500 blocks of 4 keys, 256 are chosen; blocks of 128 are read all.
        (4, "topk", 128 + 256),
        (128, "topk", 128 + 16),
    ],
)
@pytest.mark.parametrize("way", ["operator", "kernels"])
def test_compressed_keys_stand_beside_a_window(
    tmp_path: Path, way: str, ratio: int, mask: str, seen: int
) -> None:
    config = {
        "architectures": ["DeepseekV4ForCausalLM"],
        **{"model_type": "deepseek_v4", "num_hidden_layers": 2, "hidden_size": 4096},
        **{"num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512},
        **{"qk_rope_head_dim": 64, "q_lora_rank": 1024, "o_lora_rank": 1024, "index_topk": 256},
        **{"sliding_window": 128, "compress_ratios": [ratio] * 2, "torch_dtype": "bfloat16"},
    }
    name = "aiter::v4_attention_with_output" if way == "operator" else "aiter::v4_step"
    tape = Tape("AMD Instinct MI300X", shapes=False)
    tape.step(sglang_step("DECODE", [(1, 2000)] * 32), op(name, "pa_decode_sparse_kernel"))
    (call,) = tape.ask(tmp_path, CALLS, config=config)
    assert (call["evidence"], call["mask"], call["mask_source"]) == (way, mask, "config")
    assert (call["h_q"], call["h_kv"], call["latent"]) == (64, 1, True)
    assert call["flops"] == 32 * 64 * seen * 2 * (512 + 512)
    # One tensor is key and value.
    assert call["bytes"] == 32 * (64 * (512 + 512) + seen * 512) * 2


def test_without_a_config_a_call_says_what_would_tell(tmp_path: Path) -> None:
    tape = Tape(shapes=False)
    tape.step(*CASES["decode"][:2])
    tape.shapes = True
    rows = op("sglang::unified_attention_with_output", FLASHINFER, dims=[[5, 2048], [5, 512]] * 2)
    tape.step(sglang_step("DECODE", DECODE), rows)
    first, second = tape.ask(tmp_path, CALLS)
    assert first["problem"] == (
        "no shapes recorded: profile with record_shapes=True, or give --config config.json"
    )
    assert second["problem"] == (
        "the recorded shapes do not tell heads apart: give --config config.json"
    )


def test_the_config_of_a_model_cuts_the_rows_of_a_rank_into_heads(tmp_path: Path) -> None:
    """Half of its 32 heads, as one of two ranks has them."""
    tape = Tape()
    dims = [[5, 2048], [5, 512], [5, 512], [5, 2048]]
    operator = op("sglang::unified_attention_with_output", FLASHINFER, dims=dims)
    tape.step(sglang_step("DECODE", DECODE), operator)
    (call,) = tape.ask(tmp_path, CALLS, config=LLAMA)
    assert (call["h_q"], call["h_kv"], call["d_qk"]) == (16, 4, 128)
    assert call["flops"] == flops(DECODE, 16, 128)


def test_what_quantizes_for_a_call_is_a_part_of_it(tmp_path: Path) -> None:
    q = [2, 8, 400, 64]
    name = "sageattention_qattn_sm89::qk_int8_sv_f8_accum_f32_fuse_v_scale_attn_inst_buf"
    types = {0: "signed char", 1: "signed char", 2: FP8, 3: FP16}
    tape = Tape("NVIDIA GeForce RTX 4090")
    for _ in range(2):
        tape.run(
            op("aten::mm", (GEMM, 50), dims=[[800, 512], [512, 512]]),
            op("sageattention_fused::quant_per_warp_int8", ("void QuantInt8Kernel<64u>(x)", 4)),
            op("sageattention_fused::quant_per_block_int8", ("void QuantInt8Kernel<64u>(x)", 3)),
            op(
                name,
                ("void qk_int_sv_f8_attn_kernel<128u, 64u, 32u, 64u>(x)", 90),
                dims=[q] * 4,
                scalars={7: "1", 8: "0"},
                types=types,
            ),
        )
    for call in tape.ask(tmp_path, CALLS):
        assert (call["operator"], call["n_activities"]) == (name, 3)
        assert (call["busy_ns"], call["core_ns"]) == (97_000, 90_000)
        assert call["flops"] == 2 * 2 * 2 * 8 * 400 * 400 * 64
        # Scores in int8, their product with values in fp8.
        assert (call["mask"], call["precision"]) == ("dense", "int8+fp8")
