"""What the ranges around a call tell about its requests, and which of the ranges counts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attention_made import at, dense, made, paged, step
from view_tables import rows_of

KEYS = ("n", "sq", "sk", "sqsq", "sqsk")
CALL = paged(tokens=None, h=8, h_kv=8, d=64)
DECODE = "execute_8_context_0(sq0sk0sqsq0sqsk0)_generation_8(sq8sk4096sqsq8sqsk4096)"
PREFILL = "execute_50_context_2(sq50sk50sqsq1300sqsk1300)_generation_0(sq0sk0sqsq0sqsk0)"
MIXED = "execute_58_context_2(sq50sk60sqsq1300sqsk1500)_generation_8(sq8sk4096sqsq8sqsk4096)"


def loads(
    *calls: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], **more: Any
) -> list[dict[str, Any]]:
    with made(calls or [CALL], steps, targets=["attention_loads"], **more) as connection:
        return rows_of(connection, "from attention_loads order by call_no")


def sums(row: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the sums of prefill and those of generation."""
    return tuple(row[f"c_{key}"] for key in KEYS), tuple(row[f"g_{key}"] for key in KEYS)


NONE = (0, 0, 0, 0, 0)


# Names.


NAMES: list[tuple[str, Any, Any]] = [
    (DECODE, NONE, (8, 8, 4096, 8, 4096)),
    (PREFILL, (2, 50, 50, 1300, 1300), NONE),
    (MIXED, (2, 50, 60, 1300, 1500), (8, 8, 4096, 8, 4096)),
    (
        "step[EXTEND bs=2 toks=50 c_sq=50 c_sqsq=1300 c_sqsk=1500 c_sk=60]",
        (2, 50, 60, 1300, 1500),
        NONE,
    ),
    (
        "step[DECODE bs=8 g_sq=8 g_sqsq=8 g_sqsk=4096 g_sk=4096]",
        NONE,
        (8, 8, 4096, 8, 4096),
    ),
    (
        "step[MIXED bs=10 toks=58 c=2 g=8 c_sq=50 c_sqsq=1300 c_sqsk=1500 c_sk=60"
        " g_sq=8 g_sqsq=8 g_sqsk=4096 g_sk=4096]",
        (2, 50, 60, 1300, 1500),
        (8, 8, 4096, 8, 4096),
    ),
    (
        "prefill[bs=2 tok=64 ctx=[80, 84] sqsq=2048 sqsk=5248 sk=164 tbo=1]",
        (2, 64, 164, 2048, 5248),
        NONE,
    ),
    ("decode[bs=5/8 tok=5 d=5 sqsq=5 sqsk=700 sk=700]", NONE, (5, 5, 700, 5, 700)),
    # Key lengths one by one tell all where nothing is cached, or all have one token.
    ("prefill[bs=2 tok=64 ctx=[40, 24]]", (2, 64, 64, 2176, 2176), NONE),
    ("decode[bs=3 tok=3 ctx=[7, 8, 9]]", NONE, (3, 3, 24, 3, 24)),
    ("decode[bs=2 tok=8 d=2 spec=3 ctx=[30, 50]]", NONE, (2, 8, 80, 32, 320)),
]


def around(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Return a range of each name around one call after the other."""
    return [
        step(name, 50 + 100 * number, 150 + 100 * number, **more)
        for number, name in enumerate(names)
    ]


def test_sums_are_read_from_names() -> None:
    found = loads(*[CALL] * len(NAMES), steps=around(*(name for name, *_ in NAMES)))
    assert [sums(row) for row in found] == [(context, more) for _, context, more in NAMES]
    assert {row["load_source"] for row in found} == {"annotation"}
    assert {(row["exact"], row["note"]) for row in found} == {(True, None)}


def test_a_step_called_decode_that_also_prefills_is_parted() -> None:
    chance = random.Random(3)
    for n_prefill in (1, 1, 3):
        cached = [chance.randrange(100) for _ in range(n_prefill)]
        new = [64] * n_prefill
        prefill = [(q, q + more) for q, more in zip(new, cached, strict=True)]
        decode = [(1, chance.randint(10, 500)) for _ in range(8)]
        both = prefill + decode
        name = (
            f"decode[bs={len(both)} tok={sum(q for q, _ in both)} p={n_prefill} d=8"
            f" sqsq={sum(q * q for q, _ in both)} sqsk={sum(q * k for q, k in both)}"
            f" sk={sum(k for _, k in both)}]"
        )
        (row,) = loads(steps=[step(name)])
        expected = [
            (
                len(part),
                sum(q for q, _ in part),
                sum(k for _, k in part),
                sum(q * q for q, _ in part),
                sum(q * k for q, k in part),
            )
            for part in (prefill, decode)
        ]
        for got, true in zip(sums(row), expected, strict=True):
            assert got == pytest.approx(true)
        assert row["exact"] is (n_prefill == 1)


def test_tokens_and_their_squares_alone() -> None:
    # D24: this older form was not read at all.
    (row,) = loads(steps=[step("execute_context_1(888_788544)_generation_0(0)")])
    assert sums(row) == ((1, 888, 888, 788544, 788544), NONE)
    assert (row["load_source"], row["exact"]) == ("legacy annotation", False)
    assert "no cached prefix" in row["note"]


def test_requests_and_tokens_alone_are_bounds() -> None:
    counts = {"n_context_requests": 1, "n_context_tokens": 500}
    counts |= {"n_generation_requests": 3, "n_generation_tokens": 3}
    (row,) = loads(steps=[step("execute_context_1(500)_generation_3(3)", **counts)])
    assert sums(row) == ((1, 500, None, 250000, None), (3, 3, None, 3, None))
    assert (row["load_source"], row["exact"]) == ("step counts", False)


def test_names_that_tell_no_load() -> None:
    names = [
        "ProfilerStep#7",
        "capture_32_DECODE",
        "execute_diffusion_2_1024x1024",
        "execute_0_context_0(sq0sk0sqsq0sqsk0)_generation_0(sq0sk0sqsq0sqsk0)",
        "prefill[bs=2 tok=64 ctx=[40, x]]",
        "execute_context_(sqsk)_generation_()",
    ]
    assert loads(*[CALL] * len(names), steps=around(*names, kind="other")) == []


# Which range.


def test_ranges_around_or_inside_that_tell_nothing_hide_nothing() -> None:
    # D30: the outermost range was taken, so that any step of a profiler hid the sums.
    inner = {"n_context_requests": 0, "n_generation_requests": 8, "n_generation_tokens": 8}
    (row,) = loads(
        steps=[
            step("ProfilerStep#7", 0, 10_000, kind="profiler_step"),
            step("my_range", 10, 9_000, kind="other"),
            step(DECODE, 50, 500),
            step("step[DECODE bs=8]", 60, 400, **inner, n_context_tokens=0),
            step("forward", 90, 300, kind="other"),
        ]
    )
    assert sums(row) == (NONE, (8, 8, 4096, 8, 4096))
    assert row["step_event_id"] == 1002


def test_the_innermost_range_with_sums_counts() -> None:
    steps = [
        step(MIXED, 0, 1000),
        step(PREFILL, 20, 80),
        step(DECODE, 90, 150),
        step(PREFILL, 160, 180),
    ]
    first, second = loads(CALL, CALL, steps=steps)
    # The second call, at 200, is in the outer range alone: those inside have ended.
    assert (first["step_event_id"], second["step_event_id"]) == (1002, 1000)


def test_a_range_of_another_thread_counts_only_without_one_of_its_own() -> None:
    beside = step(PREFILL, 0, 1000, tid="2")
    (row,) = loads(steps=[beside])
    assert row["c_sq"] == 50
    (row,) = loads(steps=[beside, step(DECODE, 0, 1000)])
    assert row["g_sq"] == 8
    # What tells lengths beats what merely counts.
    counts = {"n_context_requests": 0, "n_generation_requests": 2}
    counted = step("step[DECODE bs=2]", 0, 1000, **counts, n_context_tokens=0)
    (row,) = loads(steps=[beside, counted])
    assert row["c_sq"] == 50
    assert loads(steps=[step(PREFILL, 0, 1000, pid="2")]) == []


def test_a_replay_has_the_range_around_its_graph_launch() -> None:
    launches = [at(number, launch_ns=100, launch_name="cudaGraphLaunch") for number in (0, 1)]
    steps = [step(DECODE, 50, 150), step(PREFILL, 5000, 5300)]
    found = loads(CALL, CALL, steps=steps, launches=launches)
    assert [row["g_sq"] for row in found] == [8, 8]


def test_ranges_of_the_device_are_the_last_resort() -> None:
    device = step(PREFILL, 4000, 6000, side="device", pid="0", tid="7")
    (row,) = loads(steps=[device], launches=[])
    assert row["c_sq"] == 50
    (row,) = loads(steps=[device, step(DECODE, 0, 1000)])
    assert row["g_sq"] == 8


def test_without_a_launch_its_operator_tells_the_moment() -> None:
    operator = {"trace_id": "t", "event_id": 77, "pid": "1", "tid": "1", "ts_ns": 130}
    (row,) = loads(
        CALL | {"operator_event_id": 77},
        steps=[step(DECODE, 100, 150), step(PREFILL, 150, 200)],
        launches=[],
        timed_events=[operator],
    )
    assert row["g_sq"] == 8


# Which part of the step.


def test_a_call_of_some_of_the_tokens_is_a_part_of_the_step() -> None:
    whole, prefill, decode, padded, other = loads(
        *(CALL | {"n_q": n} for n in (58.0, 50.0, 8.0, 64.0, 29.0)), steps=[step(MIXED)]
    )
    assert sums(whole) == sums(padded)
    assert sums(prefill) == ((2, 50, 60, 1300, 1500), NONE)
    assert sums(decode) == (NONE, (8, 8, 4096, 8, 4096))
    assert padded["note"] == "6 of 64 rows are padding"
    # Half of a step that runs as two microbatches has not its load.
    assert sums(other) == ((None,) * 5, (None,) * 5)
    assert other["note"] == "the call has 29 tokens, its step 58: it is not of this load"
    assert other["exact"] is False


def test_kernels_for_prefill_and_decode_share_a_step() -> None:
    by_name = CALL | {"evidence": "kernels"}
    prefill, decode = loads(
        by_name | {"phase_hint": "prefill"},
        by_name | {"phase_hint": "decode"},
        steps=[step(MIXED)],
    )
    assert sums(prefill) == ((2, 50, 60, 1300, 1500), NONE)
    assert sums(decode) == (NONE, (8, 8, 4096, 8, 4096))
    # One kind of kernel alone does both.
    (row,) = loads(by_name | {"phase_hint": "prefill"}, steps=[step(MIXED)])
    assert row["g_sq"] == 8


def test_sequences_of_the_arguments_stand_in_for_a_step() -> None:
    sizes = CALL | {"n_q": 400.0, "n_kv": 400.0, "n_seqs": 4.0, "max_q": 200.0}
    (row,) = loads(sizes, steps=[])
    assert sums(row) == ((4, 400, 400, None, None), NONE)
    assert (row["load_source"], row["exact"]) == ("cu_seqlens", False)
    # One of another model than the step's has its own.
    (row,) = loads(sizes | {"n_q": 4.0, "max_q": 1.0}, steps=[step(DECODE)])
    assert row["load_source"] == "cu_seqlens"
    assert sums(row) == (NONE, (4, 4, 400, 4, 400))


def test_an_encoder_inside_a_step_has_lengths_of_its_own() -> None:
    images = CALL | {"n_q": 4096.0, "n_kv": 4096.0, "n_seqs": 1.0, "mask": "dense"}
    (row,) = loads(images, steps=[step(PREFILL)])
    assert sums(row) == ((1, 4096, 4096, 4096**2, 4096**2), NONE)


def test_a_call_over_a_cache_whose_batch_generates_has_that_part() -> None:
    queries = dense(b=8, h=8, n=1, d=64) | {"n_kv": None, "mask": "causal_br"}
    (row,) = loads(queries, steps=[step(MIXED)])
    assert sums(row) == (NONE, (8, 8, 4096, 8, 4096))


def test_a_call_of_one_shape_needs_no_load() -> None:
    assert loads(dense(b=2, h=4, n=16, d=8), steps=[]) == []


def test_more_ranges_change_nothing() -> None:
    chance = random.Random(1)
    calls = [CALL] * 20
    steps = [step(DECODE if n % 2 else PREFILL, 100 * n, 100 * n + 90) for n in range(30)]
    plain = loads(*calls, steps=steps)
    noise = []
    for number in range(50):
        start = chance.randrange(3000)
        name = chance.choice(["ProfilerStep#1", "forward", "aten::x"])
        noise.append(step(name, start, start + 500, kind="other", event_id=5000 + number))
    assert loads(*calls, steps=steps + noise) == plain
