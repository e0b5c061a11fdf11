"""Work of calls over a cache, of many requests whose lengths the step around them tells."""

from __future__ import annotations

import pair_counts as count
import pytest
from attention_made import dense, made, paged, step, work
from view_tables import rows_of

DECODE = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"
EVEN = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"


def test_decode_reads_every_key_once() -> None:
    (row,) = work(paged(tokens=32, h=32, h_kv=8, d=128), steps=[step(EVEN)])
    assert row["flops"] == 537149440
    assert row["bytes"] == 134811648
    assert (row["phase"], row["phase_source"]) == ("decode", "annotation")
    assert (row["gen_tokens"], row["gen_flops"]) == (32, row["flops"])


def test_decode_in_a_window_reads_the_window() -> None:
    # D3: 158.7 % of the peak was measured against all keys; a window layer reads 128 a request.
    window = paged(tokens=32, h=64, h_kv=8, d=64, mask="window", window_size=128.0)
    full, windowed = work(paged(tokens=32, h=64, h_kv=8, d=64), window, steps=[step(DECODE)])
    assert (full["bytes"], windowed["bytes"]) == (113340416, 8912896)
    assert windowed["flops"] == 2 * 64 * 32 * 128 * 128
    assert windowed["flops_lo"] < windowed["flops"] == windowed["flops_hi"]
    assert "sequences of equal length" in windowed["mask_assumption"]


def test_an_fp8_cache_is_half_of_a_bf16_one() -> None:
    # D10: 135.3 MB for 68.2 MB.
    name = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32768sqsq32sqsk32768)"
    sizes = paged(tokens=32, h=64, h_kv=8, d=128)
    wide, narrow = work(sizes, sizes | {"kv_dtype": "fp8_e4m3"}, steps=[step(name)])
    assert round(wide["bytes"] / 1e6, 1) == 135.3
    assert round(narrow["bytes"] / 1e6, 1) == 68.2


def test_a_mixed_step_is_both_and_each_part_is_told() -> None:
    name = "execute_40_context_2(sq70sk90sqsq2500sqsk3300)_generation_3(sq3sk300sqsq3sqsk300)"
    (row,) = work(paged(tokens=73, h=8, h_kv=2, d=64), steps=[step(name)])
    assert row["phase"] == "mixed"
    assert row["ctx_flops"] == 2 * 8 * (3300 - 2500 / 2 + 70 / 2) * 128
    assert row["gen_flops"] == 2 * 8 * 300 * 128
    assert row["flops"] == row["ctx_flops"] + row["gen_flops"]
    assert row["ctx_bytes"] == 2 * 128 * (70 * 8 + 90 * 2)
    assert row["bytes"] == row["ctx_bytes"] + row["gen_bytes"]
    assert (row["ctx_tokens"], row["gen_tokens"]) == (70, 3)


def test_drafted_tokens_see_each_other_only_backwards() -> None:
    # Four tokens a request: each sees the context and those of the four before it.
    name = "execute_8_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq8sk68sqsq32sqsk272)"
    (row,) = work(paged(tokens=8, h=1, h_kv=1, d=8), steps=[step(name)])
    assert row["pairs_hi"] == 2 * count.pairs(4, 34, count.causal_br)


def test_one_compressed_tensor_is_key_and_value() -> None:
    # D12: counting it twice gave 1.97 times the bytes, and 576 for 512 as size of the value.
    name = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk8192sqsq4sqsk8192)"
    sizes = paged(tokens=4, h=16, h_kv=1, d=576, latent=True) | {"d_v": 512.0}
    (row,) = work(sizes, steps=[step(name)])
    assert row["flops"] == 2 * 16 * 8192 * (576 + 512)
    assert row["bytes"] == 2 * (4 * 16 * (576 + 512) + 8192 * 576)
    assert row["formula"] == "mla_causal_br_decode"


def test_chosen_keys_are_gathered_for_each_query() -> None:
    name = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk20000sqsq2sqsk20000)"
    sizes = paged(tokens=2, h=16, h_kv=1, d=576, latent=True, mask="topk", top_k=2048.0)
    (row,) = work(sizes | {"d_v": 512.0}, steps=[step(name)])
    assert row["pairs_hi"] == 2 * 2048
    assert row["bytes"] == 2 * (2 * 16 * (576 + 512) + 4096 * 576)


@pytest.mark.parametrize(("top_k", "slots"), [(1024.0, 128 + 1024), (None, 128 + 79)])
def test_far_keys_in_blocks_beside_a_window(top_k: float | None, slots: int) -> None:
    # 10000 keys are 2500 blocks of 4, of which 1024 are chosen, or 79 of 128, all of them read.
    name = "execute_1_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk10000sqsq1sqsk10000)"
    sizes = paged(tokens=1, h=64, h_kv=1, d=512, latent=True, mask="topk", window_size=128.0)
    (row,) = work(sizes | {"top_k": top_k}, steps=[step(name)])
    assert row["pairs_lo"] == row["pairs_hi"] == slots
    assert row["bytes"] == 2 * (64 * 1024 + slots * 512)


def test_linear_attention_moves_a_state_of_each_request() -> None:
    # D13: a decode step of one token a request moves 171 times its tokens.
    name = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk8192sqsq4sqsk8192)"
    sizes = paged(tokens=4, h=16, h_kv=32, d=128, implementation="linear", mask="unknown")
    (row,) = work(sizes, steps=[step(name)])
    assert row["flops"] == 7 * 4 * 32 * 128 * 128
    tokens = 4 * 32 * (128 + 2 * 128 + 2) * 2
    assert row["bytes"] == tokens + 2 * 4 * 32 * 128 * 128 * 4
    assert round(row["bytes"] / tokens) == 171
    assert (row["formula"], row["pairs_hi"]) == ("linear_decode", None)


def test_a_cache_write_moves_bytes_and_computes_nothing() -> None:
    # D19: without FLOPs it is still a copy of so many bytes.
    sizes = dense(b=1, h=1, n=32, d=1024, implementation="cache")
    (row,) = work(sizes)
    assert (row["flops"], row["bytes"]) == (0, 2 * 2 * 32 * 1024 * 2)
    assert row["formula"] == "cache_write"


def test_pages_round_keys_up() -> None:
    name = "execute_1_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk100sqsq1sqsk100)"
    page = {"trace_id": "t", "name": "k", "page_size": 16}
    call = paged(tokens=1, h=8, h_kv=2, d=64)
    with made([call], [step(name)], attention_names=[page]) as connection:
        (row,) = rows_of(connection, "from attention_work")
    assert row["bytes_pages"] - row["bytes"] == 12 * 2 * 128 * 2


def test_a_step_is_not_the_phase_of_an_encoder_inside_it() -> None:
    encoder, token = work(
        dense(b=4, h=12, n=197, d=64), dense(b=4, h=12, n=1, kv=197, d=64), steps=[step(DECODE)]
    )
    assert (encoder["phase"], encoder["gen_tokens"]) == (None, None)
    assert (token["phase"], token["gen_tokens"]) == ("decode", 4)
