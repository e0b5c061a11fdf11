"""What configs, launch grids and ranks tell of attention, and that no more is made of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest
from command_line import answer, command

Shared = Callable[[str], Path]
SGLANG = "traces/sglang_qwen3_8b_decode_mi300x.json.gz"
VLLM = "traces/vllm_gpt_oss_20b_decode_mi300x.json.gz"
B200 = "traces/vllm_gpt_oss_120b_prefill_b200.json.gz"
BERT = "traces/hf_bert_small_h100.json.gz"


@pytest.fixture(scope="module")
def operations(
    tmp_path_factory: pytest.TempPathFactory, shared: Shared
) -> Callable[[str, str | None], list[dict[str, Any]]]:
    """Return the operations of a trace, with a config of ../shared or without."""
    store = tmp_path_factory.mktemp("told")

    def show(trace: str, config: str | None = None) -> list[dict[str, Any]]:
        name = f"facts/models/configs/{config}.json"
        options = [] if config is None else ["--config", shared(name)]
        shown = answer(command(store, "attention", shared(trace), *options, "--format", "json"))
        found: list[dict[str, Any]] = shown["operations"]
        return found

    return show


def test_a_config_with_heads_of_another_size_is_named_and_not_used(operations: Any) -> None:
    for one in operations(SGLANG, "gpt-oss-20b"):
        assert one["h_q"] is None
        assert one["efficiency_pct"] is None
        assert one["problem"] == (
            "the config has heads of 64, kernels attend to heads of 128: give --config of this"
            " model"
        )


def test_what_a_config_says_of_a_layer_is_no_assumption(operations: Any) -> None:
    attend, write = operations(SGLANG, "Qwen3-8B")
    assert (attend["h_q"], attend["h_kv"], attend["d_qk"]) == (32, 8, 128)
    assert (attend["mask_source"], attend["mask_assumption"]) == ("config", None)
    # Kernels that write the cache name no type; those that read it do.
    assert write["q_dtype"] == write["kv_dtype"] == "bf16"
    assert write["bytes"] == 36 * 32 * 8 * (128 + 128) * (2 + 2)


def test_a_config_whose_layers_are_not_those_of_the_trace_is_an_assumption(operations: Any) -> None:
    for one in operations(VLLM, "Qwen3-8B"):
        if one["implementation"] == "paged":
            assert one["layers"] is None
            assert one["mask_assumption"].endswith(
                "heads of the config, though none of its layers is found in the trace"
            )


def test_one_key_head_of_a_rank_is_one_of_several(operations: Any) -> None:
    for one in operations(B200):
        assert (one["h_q"], one["h_kv"], one["pattern"]) == (8, 1, "GQA")


@pytest.mark.parametrize(("trace", "kernel"), [(BERT, "flash_fwd_kernel"), (B200, "fmhaSm100a")])
def test_thread_blocks_are_those_that_were_launched(
    tmp_path: Path, shared: Shared, trace: str, kernel: str
) -> None:
    shown = answer(
        command(
            tmp_path,
            *("sql", shared(trace), "select distinct n_blocks from attention_op_grids"),
            *("--format", "json"),
        )
    )
    content = json.loads(gzip.decompress(shared(trace).read_bytes()))
    grids = {
        prod(event["args"]["grid"])
        for event in content["traceEvents"]
        if event.get("cat") == "kernel" and kernel in event["name"]
    }
    assert {row["n_blocks"] for row in shown} == grids
