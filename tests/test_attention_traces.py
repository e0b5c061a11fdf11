"""Attention in real traces: calls, names and work, against other tools and figures by hand."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from conftest import Analyse, Shared
from operator_arguments import (
    A,
    sizes,
)

# Calls.


Oracle = list[dict[str, Any]]


def known(oracle: Oracle, name: str, operator: str) -> Oracle:
    return [
        row
        for row in oracle
        if row["trace"] == f"traces/{name}.json.gz"
        and row["op"] == operator
        and row["level"] == "unified_perf_summary"
    ]


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
    shared: Shared, analyse: Analyse, oracle: Oracle, name: str
) -> None:
    operator, count, shape, mask = SHIPPED[name]
    (row,) = known(oracle, name, operator)
    found = analyse(shared(f"traces/{name}.json.gz"))
    calls = found.rows("from attention_calls where evidence = 'operator'")
    assert {(c["operator"], sizes(c), c["mask"]) for c in calls} == {(operator, shape, mask)}
    assert len(calls) == count == row["count"]
    assert all(json.loads(c["input_dims"]) == row["input_dims"] for c in calls)
    assert sum(c["busy_ns"] for c in calls) / 1e3 == pytest.approx(
        row["kernel_time_sum_us"], abs=0.1
    )


def test_a_capture_tells_the_operators_of_a_replay(
    shared: Shared, analyse: Analyse, oracle: Oracle
) -> None:
    capture = analyse(shared("traces/sglang_qwen3_8b_graph_capture_bs32_rank0.json.gz")).trace_id
    name = "sglang_qwen3_8b_decode_mi300x"
    found = analyse(shared(f"traces/{name}.json.gz"), capture=capture)
    calls = found.rows("from attention_calls")
    for operator, shape, n_activities in (
        ("sglang_profiler::attention_paged_attention_ragged", (1, 32, None, 32, 8, 128, 128), 2),
        ("sglang::store_cache", (1, 32, 32, 1, 1, 1024, 1024), 1),
    ):
        (row,) = known(oracle, name, operator)
        own = [c for c in calls if c["operator"] == operator]
        assert len(own) == row["count"] == 36
        assert {(sizes(c), c["n_activities"]) for c in own} == {(shape, n_activities)}
        assert {c["evidence"] for c in own} == {c["shape_source"] for c in own} == {"capture"}
        time_us = sum(c["busy_ns"] for c in own) / 1e3
        assert time_us == pytest.approx(row["kernel_time_sum_us"], abs=0.1)
    assert len(calls) == 72


def test_layers_of_a_serving_trace_differ_by_their_kernels(
    shared: Shared, analyse: Analyse, oracle: Oracle
) -> None:
    name = "vllm_gpt_oss_120b_prefill_b200"
    operator = "vllm::unified_attention_with_output"
    (row,) = known(oracle, name, operator)
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


def test_window_and_full_layers_of_a_decode_step_are_apart(
    shared: Shared, analyse: Analyse
) -> None:
    config = json.loads(shared("facts/models/configs/gpt-oss-20b.json").read_text("utf-8"))
    found = analyse(shared("traces/vllm_gpt_oss_20b_decode_mi300x.json.gz"), config=config)
    rows = found.rows(
        "select family, mask, window_size, h_q, h_kv, d_qk, q_dtype, layer_no, core_ns"
        " from attention_calls where implementation = 'paged' order by call_no",
    )
    assert [row["layer_no"] for row in rows] == list(range(24))
    assert {
        (row["family"], row["mask"], row["window_size"], row["layer_no"] % 2) for row in rows
    } == {("triton_unified", "window", 128, 0), ("triton_unified_split", "causal_br", None, 1)}
    assert {(row["h_q"], row["h_kv"], row["d_qk"], row["q_dtype"]) for row in rows} == {
        (64, 8, 64, "bf16")
    }
    for parity, mean_us in ((0, 13.4822), (1, 46.8812)):
        times = [row["core_ns"] for row in rows if row["layer_no"] % 2 == parity]
        assert sum(times) / len(times) / 1000 == pytest.approx(mean_us, abs=1e-3)


def test_a_decode_step_in_a_graph_has_a_call_a_layer(shared: Shared, analyse: Analyse) -> None:
    rows = analyse(shared("traces/sglang_qwen3_8b_decode_mi300x.json.gz")).rows(
        "select family, n_activities, sum_dur_ns, d_qk from attention_calls",
    )
    assert Counter((row["family"], row["n_activities"]) for row in rows) == {
        ("paged_attention_ll4mi", 2): 36,
        ("kv_write", 1): 36,
    }
    paged = [row for row in rows if row["family"] == "paged_attention_ll4mi"]
    assert sum(row["sum_dur_ns"] for row in paged) / 1000 == pytest.approx(2127.86, abs=0.02)
    assert {row["d_qk"] for row in paged} == {128}


def test_names_alone_tell_most_of_generated_kernels(shared: Shared, analyse: Analyse) -> None:
    rows = analyse(shared("traces/vllm_gpt_oss_120b_prefill_b200.json.gz")).rows(
        "select mask, head_dim, page_size, q_dtype, kv_dtype, o_dtype, phase, count(*) as n"
        " from attention_names join activities using (trace_id, name)"
        " where role = 'core' group by all order by mask",
    )
    known = (64, 16, "fp8_e4m3", "fp8_e4m3", "bf16", "prefill", 18)
    assert [tuple(row.values()) for row in rows] == [("causal", *known), ("window", *known)]


def test_kernels_of_a_training_step_are_told(shared: Shared, analyse: Analyse) -> None:
    rows = analyse(shared("traces/deepseek_train_h800.json.gz")).rows(
        "select role, direction, head_dim, head_dim_v, mask, count(*) as n from attention_names"
        " join activities using (trace_id, name) where role in ('core', 'step')"
        " group by all order by direction, role, head_dim",
    )
    assert [tuple(row.values()) for row in rows if row["role"] == "core"] == [
        ("core", "bwd", 192, 128, "causal", 4),
        ("core", "fwd", 192, 128, "causal", 4),
    ]
    assert sum(row["n"] for row in rows if row["role"] == "step") == 8


# Work.

SGLANG = "sglang_qwen3_8b_decode_mi300x"
REAL = {
    "hf_vit_nsfw_h100": (None, "dense_fwd", 12, 476884992, 4841472),
    "hf_qwen1_5_0_5b_h100": (None, "causal_tl_fwd", 24, 2 * 16 * 16 * 156520 * 128, 73269248),
    "torch_compile_triton": (None, "dense_fwd", 1, 1099511627776, 512 * 2**20),
    "vllm_gpt_oss_120b_prefill_b200": (None, "prefill", 36, 808378368, None),
    SGLANG: ("sglang_qwen3_8b_graph_capture_bs32_rank0", "decode", 36, 537149440, 134811648),
}
"""Its capture, the end of the formula, calls, FLOPs and bytes of each."""


@pytest.mark.parametrize("name", REAL)
def test_work_in_real_traces(name: str, shared: Shared, analyse: Analyse) -> None:
    capture, formula, calls, flops, size = REAL[name]
    beside = capture and analyse(shared(f"traces/{capture}.json.gz")).trace_id
    found = analyse(shared(f"traces/{name}.json.gz"), capture=beside).rows(
        "from attention_work where formula is not null"
    )
    known = [row for row in found if row["formula"].endswith(formula)]
    assert len(known) == calls
    assert {row["flops"] for row in known} == {flops}
    assert size is None or {row["bytes"] for row in known} == {size}
