"""Pairs, FLOPs and bytes of attention: formulas against counting, shapes against hand checks."""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pair_counts as count
import pytest
from attention_made import dense, made, paged, rows, step, work

from trace_sql.database import Database
from trace_sql.macros import macro_names, macro_sql, macros_in, make_macros
from trace_sql.store import Settings, Store

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT / ".." / "shared" / "facts" / "attention"
SIZES = (1, 2, 3, 7, 16, 63, 64)
QUERIES = (0, 1, 2, 5, 16, 17, 33, 64)
SHAPES = [(n_q, n_kv) for n_q in QUERIES for n_kv in QUERIES]


@pytest.fixture(scope="module")
def macros() -> Iterator[duckdb.DuckDBPyConnection]:
    with contextlib.closing(duckdb.connect()) as connection:
        make_macros(connection, " ".join(macro_names()), set())
        yield connection


def value(macros: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = macros.execute(f"select {sql}").fetchone()
    assert row
    return row[0]


def same(macros: duckdb.DuckDBPyConnection, name: str, cases: Mapping[Any, int]) -> None:
    """The macro gives what counting gives, for every case at once."""
    listed = ", ".join(f"{name}({', '.join(map(str, case))})" for case in cases)
    got = value(macros, f"[{listed}]")
    assert dict(zip(cases, got, strict=True)) == cases


# Masks: every shape up to 64 by counting.


def test_causal_pairs_bottom_right(macros: duckdb.DuckDBPyConnection) -> None:
    expected = {(q, k): count.pairs(q, k, count.causal_br) for q, k in SHAPES}
    same(macros, "causal_br_pairs", expected)


def test_causal_pairs_top_left(macros: duckdb.DuckDBPyConnection) -> None:
    expected = {(q, k): count.pairs(q, k, count.causal_tl(q, k)) for q, k in SHAPES}
    same(macros, "causal_tl_pairs", expected)
    same(
        macros,
        "mask_keys",
        {
            ("'causal_tl'", q, k, "null", "null"): count.keys(q, k, count.causal_tl(q, k))
            for q, k in SHAPES
        },
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "mask"), [("window", count.window), ("chunked", count.chunked)])
def test_pairs_and_keys_of_windows_and_chunks(
    name: str, mask: Callable[[int], count.Sees], size: int, macros: duckdb.DuckDBPyConnection
) -> None:
    seen = mask(size)
    same(macros, f"{name}_pairs", {(q, k, size): count.pairs(q, k, seen) for q, k in SHAPES})
    same(macros, f"{name}_keys", {(q, k, size): count.keys(q, k, seen) for q, k in SHAPES})


@pytest.mark.parametrize("size", SIZES)
def test_pairs_of_chosen_keys(size: int, macros: duckdb.DuckDBPyConnection) -> None:
    same(macros, "topk_pairs", {(q, k, size): count.topk_pairs(q, k, size) for q, k in SHAPES})


@pytest.mark.parametrize("left", [0, 1, 5, 64])
@pytest.mark.parametrize("right", [0, 1, 5, 64])
def test_pairs_of_a_band(left: int, right: int, macros: duckdb.DuckDBPyConnection) -> None:
    seen = count.band(left, right)
    expected = {(q, k, left, right): count.pairs(q, k, seen) for q, k in SHAPES}
    same(macros, "band_pairs", expected)


def test_pairs_from_sums_over_requests(macros: duckdb.DuckDBPyConnection) -> None:
    chance = random.Random(5)
    for _ in range(50):
        lengths = [(q, q + chance.randrange(20)) for q in chance.choices(range(1, 30), k=9)]
        sums = [
            sum(q for q, _ in lengths),
            sum(q * q for q, _ in lengths),
            sum(q * k for q, k in lengths),
        ]
        expected = sum(count.pairs(q, k, count.causal_br) for q, k in lengths)
        assert value(macros, f"context_pairs({sums[0]}, {sums[1]}, {sums[2]})") == expected


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("causal_br_pairs", 2),
        ("causal_tl_pairs", 2),
        ("window_pairs", 3),
        ("window_keys", 3),
        ("chunked_pairs", 3),
        ("chunked_keys", 3),
        ("topk_pairs", 3),
        ("band_pairs", 4),
        ("context_pairs", 3),
        ("forward_flops", 4),
        ("backward_flops", 4),
        ("stored_backward_flops", 4),
        ("linear_flops", 4),
    ],
)
def test_a_size_that_is_not_known_is_never_zero(
    name: str, arguments: int, macros: duckdb.DuckDBPyConnection
) -> None:
    for missing in range(arguments):
        listed = ["null" if place == missing else "4" for place in range(arguments)]
        assert value(macros, f"{name}({', '.join(listed)})") is None, listed


def test_macros_take_sizes_of_any_number_type(macros: duckdb.DuckDBPyConnection) -> None:
    # As integers, 2^17 squared and doubled would no longer fit.
    assert value(macros, "causal_br_pairs(131072::integer, 131072::integer)") == 8590000128
    assert value(macros, "typeof(causal_br_pairs(3::utinyint, 5::hugeint))") == "DOUBLE"
    assert value(macros, "forward_flops(128, 1000000000, 128, 128)") == 2.0 * 128 * 1e9 * 256


def test_every_macro_is_one_documented_statement() -> None:
    for name in macro_names():
        text = macro_sql(name)
        comment, _, statement = text.partition("\ncreate macro ")
        assert all(line.startswith("-- ") or line == "--" for line in comment.splitlines()), name
        assert statement.startswith(f"{name}("), name
        assert max(map(len, text.splitlines())) <= 100, name


def test_a_macro_brings_those_it_uses() -> None:
    assert macros_in("select CAUSAL_BR_PAIRS(1, 2)") == ["capped_sum", "causal_br_pairs"]
    assert macros_in("select 1") == []


def test_the_readme_names_every_macro() -> None:
    text = (ROOT / "sql" / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Macros")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == set(macro_names())


def test_users_can_ask_with_macros(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    store = Store(tmp_path / "store")
    trace_id = store.ingest(trace, Settings()).trace_id
    with Database(store, {trace_id: store.settings(trace_id)}) as database:
        asked = "select forward_flops(8, Causal_BR_Pairs(16, 64), 64, 64) as flops"
        assert database.ask(asked).rows == database.query(asked).rows == [(1851392.0,)]
        assert database.ask(f"{asked}, band_pairs(2, 2, 0, 0)").rows == [(1851392.0, 2.0)]


# One shape.


def test_dense_attention_is_two_products() -> None:
    (row,) = work(dense(b=4, h=12, n=197, d=64))
    assert row["flops"] == row["flops_lo"] == row["flops_hi"] == 476884992
    assert row["bytes"] == 4841472
    assert (row["formula"], row["mask_assumption"], row["problem"]) == ("dense_fwd", None, None)


@pytest.mark.parametrize(
    ("mask", "n_q", "n_kv"),
    [
        ("causal_br", 1, 64),
        ("causal_br", 16, 64),
        ("causal_br", 64, 16),
        ("causal_tl", 16, 64),
        ("causal_tl", 64, 64),
    ],
)
def test_causal_attention_of_any_lengths_has_its_exact_pairs(
    mask: str, n_q: int, n_kv: int
) -> None:
    (row,) = work(dense(b=3, h=4, n=n_q, kv=n_kv, d=32, mask=mask))
    sees = count.causal_br if mask == "causal_br" else count.causal_tl(n_q, n_kv)
    assert row["pairs_lo"] == row["pairs_hi"] == 3 * count.pairs(n_q, n_kv, sees)
    assert row["flops"] == 2 * 4 * row["pairs_hi"] * 64
    keys = count.keys(n_q, n_kv, sees)
    assert row["bytes"] == 2 * 3 * 4 * 2 * 32 * (n_q + keys)


def test_key_heads_are_read_once_for_their_group() -> None:
    (alone, grouped) = work(
        dense(b=1, h=32, n=128, d=64), dense(b=1, h=32, n=128, d=64) | {"h_kv": 4.0}
    )
    assert alone["flops"] == grouped["flops"]
    assert alone["bytes"] - grouped["bytes"] == 2 * 128 * 64 * 28 * 2


def test_types_count_as_they_are() -> None:
    half, single, cache, drain = work(
        dense(b=1, h=2, n=64, d=64),
        dense(b=1, h=2, n=64, d=64, q_dtype="fp32", kv_dtype="fp32", o_dtype="fp32"),
        dense(b=1, h=2, n=64, d=64, kv_dtype="fp8_e4m3"),
        dense(b=1, h=2, n=64, d=64, q_dtype="fp8_e4m3", kv_dtype="fp8_e4m3", o_dtype=None),
    )
    tensor = 2 * 64 * 64
    assert half["bytes"] == 4 * tensor * 2
    assert single["bytes"] == 2 * half["bytes"]
    assert cache["bytes"] == 2 * tensor * 2 + 2 * tensor
    # An output of unknown type is not fp8.
    assert drain["bytes"] == 3 * tensor + 2 * tensor


def test_a_bias_is_read_as_it_lies_in_memory() -> None:
    # D9: 40.5 MB that one number of 17.6 MB left out.
    sizes = dense(b=1, h=16, n=4500, d=64, bias_elements=4500.0 * 4500, bias_dtype="bf16")
    (row,) = work(sizes)
    assert row["bytes"] == 2 * 4 * 4500 * 16 * 64 + 40.5e6


def test_backward_is_five_products_and_reads_what_they_need() -> None:
    # D9: seven tensors of 176 MiB are 1232 MiB, the output and two numbers a row make 1419.
    (row,) = work(dense(b=1, h=64, n=22528, d=64, direction="bwd"))
    assert row["flops"] == 2.5 * 2 * 64 * 22528**2 * 128
    assert row["bytes"] / 2**20 == 8 * 176 + 11
    assert (row["formula"], row["phase"]) == ("dense_bwd", "train_bwd")


def test_causal_backward_is_halved_only_where_it_is_causal() -> None:
    # D6: a scale read as the flag halved every backward.
    plain, causal = work(
        dense(b=1, h=1, n=64, d=8, direction="bwd"),
        dense(b=1, h=1, n=64, d=8, direction="bwd", mask="causal_br"),
    )
    assert plain["pairs_hi"] == 64 * 64
    assert causal["pairs_hi"] == 64 * 65 / 2


def test_unfused_backward_does_not_compute_scores_again() -> None:
    fused, unfused = work(
        dense(b=1, h=2, n=32, d=8, direction="bwd"),
        dense(b=1, h=2, n=32, d=8, direction="bwd", implementation="unfused"),
    )
    assert fused["flops"] / unfused["flops"] == 5 / 4
    assert unfused["score_bytes"] == 7 * 2 * 32 * 32 * 2


def test_unfused_attention_counts_whole_matrices_and_their_traffic() -> None:
    (row,) = work(dense(b=2, h=4, n=100, d=16, implementation="unfused", mask="causal_tl"))
    assert row["flops"] == 2 * 2 * 4 * 100 * 100 * 32
    assert row["bytes"] == 4 * 2 * 4 * 100 * 16 * 2
    assert row["score_bytes"] == 4 * 2 * 4 * 100 * 100 * 2
    assert "matrix of scores" in row["mask_assumption"]


def test_a_window_of_one_sequence() -> None:
    # D3: at 8192 tokens a window of 128 has 32 times fewer pairs than causal attention.
    whole, window = work(
        dense(b=1, h=1, n=8192, d=64, mask="causal_br"),
        dense(b=1, h=1, n=8192, d=64, mask="window", window_size=128.0),
    )
    assert window["pairs_lo"] == window["pairs_hi"] == 128 * 8192 - 128 * 127 / 2
    assert 31 < whole["flops"] / window["flops"] < 33


def test_a_mask_that_nobody_tells_lies_between_causal_and_none() -> None:
    (row,) = work(dense(b=1, h=1, n=64, d=8, mask="unknown", mask_source="assumed"))
    assert (row["pairs_lo"], row["pairs_hi"]) == (64 * 65 / 2, 64 * 64)
    assert row["flops"] == row["flops_hi"]
    assert row["mask_assumption"] == "mask not recorded: none assumed"


def test_blocks_that_are_not_told_leave_bounds() -> None:
    (row,) = work(dense(b=1, h=1, n=64, d=8, mask="block_sparse"))
    assert row["flops"] is None
    assert row["flops_lo"] < row["flops_hi"]
    assert "block-sparse" in row["problem"]


# Many requests.

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
        (row,) = rows(connection, "from attention_work")
    assert row["bytes_pages"] - row["bytes"] == 12 * 2 * 128 * 2


def test_a_step_is_not_the_phase_of_an_encoder_inside_it() -> None:
    encoder, token = work(
        dense(b=4, h=12, n=197, d=64), dense(b=4, h=12, n=1, kv=197, d=64), steps=[step(DECODE)]
    )
    assert (encoder["phase"], encoder["gen_tokens"]) == (None, None)
    assert (token["phase"], token["gen_tokens"]) == ("decode", 4)


# Lengths that only arguments bound.


def varlen(**more: Any) -> dict[str, Any]:
    return paged(tokens=None, h=4, h_kv=4, d=32) | {"implementation": "flash"} | more


def test_sequences_of_equal_length_are_exact() -> None:
    (row,) = work(varlen(n_q=400.0, n_kv=400.0, n_seqs=4.0, max_q=100.0, max_kv=100.0))
    assert row["pairs_lo"] == row["pairs_hi"] == 4 * 100 * 101 / 2
    assert row["mask_assumption"].startswith("no window recorded")


def test_a_maximum_beyond_the_tokens_is_padding() -> None:
    # D8: a static maximum counted 2.28 million pairs where 0.5 million is the most.
    (row,) = work(varlen(n_q=1000.0, n_kv=1000.0, n_seqs=10.0, max_q=2048.0, max_kv=2048.0))
    assert (row["pairs_lo"], row["pairs_hi"]) == ((1e5 + 1000) / 2, (1e6 + 1000) / 2)
    assert row["flops_lo"] <= row["flops"] <= row["flops_hi"]
    assert "lengths of single sequences not recorded" in row["mask_assumption"]


MASKS = ("causal_br", "dense", "window", "topk", "chunked")


def lengths_by_chance(chance: random.Random) -> list[tuple[int, int]]:
    """Return query and key lengths of some requests, each with or without a cached prefix."""
    queries = [chance.randint(1, 40) for _ in range(chance.randint(1, 8))]
    return [(q, q + chance.choice([0, chance.randrange(60)])) for q in queries]


def test_bounds_hold_whatever_the_lengths_are() -> None:
    chance = random.Random(11)
    calls: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    expected: list[tuple[str, float]] = []
    for number in range(60):
        lengths = lengths_by_chance(chance)
        size = chance.randint(1, 50)
        total = {mask: 0 for mask in MASKS}
        for q, k in lengths:
            total["causal_br"] += count.pairs(q, k, count.causal_br)
            total["dense"] += q * k
            total["window"] += count.pairs(q, k, count.window(size))
            total["topk"] += count.topk_pairs(q, k, size)
            total["chunked"] += count.pairs(q, k, count.chunked(size))
        expected += total.items()
        sums = {
            "sq": sum(q for q, _ in lengths),
            "sk": sum(k for _, k in lengths),
            "sqsq": sum(q * q for q, _ in lengths),
            "sqsk": sum(q * k for q, k in lengths),
        }
        told = {
            "n_q": float(sums["sq"]),
            "n_kv": float(sums["sk"]),
            "n_seqs": float(len(lengths)),
            "max_q": float(max(q for q, _ in lengths)),
            "max_kv": float(max(k for _, k in lengths)),
            "window_size": float(size),
        }
        calls += [varlen(**told, mask=mask) for mask in MASKS]
        calls[-2] |= {"window_size": None, "top_k": float(size)}
        listed = "".join(f"{key}{number}" for key, number in sums.items())
        steps.append(
            step(
                f"execute_1_context_{len(lengths)}({listed})_generation_0(sq0sk0sqsq0sqsk0)",
                50 + 500 * number,
                550 + 500 * number,
            )
        )
    by_arguments, by_sums = work(*calls), work(*calls, steps=steps)
    for found in (by_arguments, by_sums):
        for (mask, pairs), row in zip(expected, found, strict=True):
            assert row["pairs_lo"] - 1e-6 <= pairs <= row["pairs_hi"] + 1e-6, mask
            assert row["flops_lo"] - 1e-3 <= row["flops"] <= row["flops_hi"] + 1e-3, mask
            assert math.isclose(row["flops_hi"], 2 * 4 * 64 * row["pairs_hi"])
    for (mask, pairs), row in zip(expected, by_sums, strict=True):
        if mask in ("causal_br", "dense"):
            assert row["flops"] == 2 * 4 * 64 * pairs


def test_one_token_a_sequence_is_decode_and_exact() -> None:
    # D5: lengths that differ are no error.
    (row,) = work(varlen(n_q=6.0, n_kv=900.0, n_seqs=6.0, max_q=1.0, max_kv=500.0))
    assert row["pairs_lo"] == row["pairs_hi"] == 900
    assert (row["phase"], row["phase_source"]) == ("decode", "cu_seqlens")


# What cannot be known says so.


def test_without_shapes_there_is_no_number() -> None:
    (row,) = work({"mask": "unknown"})
    assert row["flops"] is row["bytes"] is row["pairs_hi"] is None
    assert row["problem"] == "no shapes recorded: profile with record_shapes=True"


def test_without_lengths_there_is_no_number() -> None:
    (row,) = work(paged(tokens=32, h=8, h_kv=8, d=64))
    assert row["flops"] is row["bytes"] is None
    assert "step annotations" in row["problem"]


def test_without_types_there_are_flops_alone() -> None:
    (row,) = work(dense(b=1, h=1, n=8, d=8, q_dtype=None, kv_dtype=None, o_dtype=None))
    assert row["flops"] == 2 * 64 * 16
    assert row["bytes"] is None
    assert row["problem"].startswith("types not recorded")


@pytest.mark.parametrize("size", [1e300, -5.0, float("inf"), float("nan")])
def test_impossible_sizes_are_no_numbers(size: float) -> None:
    (row,) = work(dense(b=1, h=1, n=8, d=8) | {"n_q": size, "n_kv": size})
    numbers = [row[key] for key in row if isinstance(row[key], float)]
    assert all(math.isfinite(number) and number >= 0 for number in numbers)
    assert row["problem"]


# The numbers of a peer on public traces, where it is right.


def test_dense_rows_of_the_oracle() -> None:
    path = FACTS / "oracle.json"
    if not path.is_file():
        pytest.skip("the facts about attention are not here")
    oracle = json.loads(path.read_text(encoding="utf-8"))["rows"]
    calls, expected = [], []
    for row in oracle:
        causal = row["concrete_inputs"][4:5] == ["True"]
        if row["op"].startswith("aten::_scaled_dot") and not causal and row.get("GFLOPS"):
            b, h, n, d = row["input_dims"][0]
            assert row["input_dims"][1] == row["input_dims"][2] == row["input_dims"][0]
            calls.append(dense(b=b, h=h, n=n, d=d))
            expected.append((row["GFLOPS"] * 1e9, row["data_moved_MB"] * 2**20))
    assert len(calls) >= 4
    for got, (flops, size) in zip(work(*calls), expected, strict=True):
        assert math.isclose(got["flops"], flops, rel_tol=1e-9)
        assert math.isclose(got["bytes"], size, rel_tol=1e-9)


# Real traces.

TRACES = ROOT / ".." / "shared" / "traces"
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
def test_work_in_real_traces(name: str, tmp_path: Path) -> None:
    if not TRACES.is_dir():
        pytest.skip("the real traces are not here")
    capture, formula, calls, flops, size = REAL[name]
    store = Store(tmp_path / "store")
    beside = capture and store.ingest(TRACES / f"{capture}.json.gz", Settings()).trace_id
    trace = store.ingest(TRACES / f"{name}.json.gz", Settings(capture=beside))
    with Database(store, {trace.trace_id: store.settings(trace.trace_id)}) as database:
        found = database.query(
            "select flops, bytes, count(*) from attention_work"
            " where ends_with(formula, ?) group by all",
            [formula],
        ).rows
    assert [(row[0], row[2]) for row in found] == [(flops, calls)]
    assert size is None or found[0][1] == size
