"""Attention by operator: which operator is the call, what its arguments say, which kernels are its.

Shapes are what the operator was called with, written down beside the arguments as profilers record
them.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from conftest import Analyse
from host_made import FLASH, FLASH_BACKWARD, FP8, FP16, Host
from operator_arguments import (
    BHND,
    BNHD,
    CU,
    FAMILIES,
    PACKED,
    PAGES,
    TND,
    VECTOR,
    A,
    attention_calls,
    four,
    sizes,
)

from trace_sql.attention_rules import operator_rules


def test_a_rule_wins_its_examples() -> None:
    """To Python as to the engine."""
    examples = {name: rule.pattern for rule in operator_rules() for name in rule.examples}
    first = {
        name: next(rule.pattern for rule in operator_rules() if re.fullmatch(rule.pattern, name))
        for name in examples
    }
    assert first == examples
    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute(
            "create table rules as select unnest(?) as pattern, unnest(range(?)) as place",
            [[rule.pattern for rule in operator_rules()], len(operator_rules())],
        )
        found = connection.execute(
            "select name, arg_min(pattern, place) from unnest(?) as n(name)"
            " join rules on regexp_full_match(name, pattern) group by name",
            [list(examples)],
        ).fetchall()
    assert dict(found) == examples


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
