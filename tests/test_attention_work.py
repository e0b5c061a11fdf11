"""Pairs, FLOPs and bytes of attention: formulas against counting, shapes against hand checks."""

from __future__ import annotations

import math
import random
from typing import Any

import pair_counts as count
import pytest
from attention_made import dense, paged, step, work

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
    assert "score matrix" in row["mask_assumption"]


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
    assert row["mask_assumption"] == "no mask, as none is recorded"


def test_blocks_that_are_not_told_leave_bounds() -> None:
    (row,) = work(dense(b=1, h=1, n=64, d=8, mask="block_sparse"))
    assert row["flops"] is None
    assert row["flops_lo"] < row["flops_hi"]
    assert "block-sparse" in row["problem"]


# Lengths that only arguments bound.


def varlen(**more: Any) -> dict[str, Any]:
    return paged(tokens=None, h=4, h_kv=4, d=32) | {"implementation": "flash"} | more


def test_sequences_of_equal_length_are_exact() -> None:
    (row,) = work(varlen(n_q=400.0, n_kv=400.0, n_seqs=4.0, max_q=100.0, max_kv=100.0))
    assert row["pairs_lo"] == row["pairs_hi"] == 4 * 100 * 101 / 2
    assert row["mask_assumption"].startswith("causal over all keys")


def test_a_maximum_beyond_the_tokens_is_padding() -> None:
    # D8: a static maximum counted 2.28 million pairs where 0.5 million is the most.
    (row,) = work(varlen(n_q=1000.0, n_kv=1000.0, n_seqs=10.0, max_q=2048.0, max_kv=2048.0))
    assert (row["pairs_lo"], row["pairs_hi"]) == ((1e5 + 1000) / 2, (1e6 + 1000) / 2)
    assert row["flops_lo"] <= row["flops"] <= row["flops_hi"]
    assert "those of single sequences are not recorded" in row["mask_assumption"]


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


def test_dense_rows_of_the_oracle(oracle: list[dict[str, Any]]) -> None:
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
