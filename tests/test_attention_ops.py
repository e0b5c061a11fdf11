"""Operations of attention: which calls are alike, what their sums, shares and ratios are."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attention_ops_made import Row, made_ops
from view_tables import rows_of

OPS = ("attention_ops",)


def ops(calls: Sequence[Mapping[str, Any]], **more: Any) -> list[Row]:
    with made_ops(calls, OPS, **more) as connection:
        return rows_of(connection, "from attention_ops order by op_no")


def each(cases: Mapping[str, Row | Sequence[Row]]) -> dict[str, list[Row]]:
    """Return the operations of several traces, a name each, in one go."""
    calls = [
        {**call, "trace_id": name}
        for name, listed in cases.items()
        for call in ([listed] if isinstance(listed, Mapping) else listed)
    ]
    found: dict[str, list[Row]] = {name: [] for name in cases}
    for op in ops(calls):
        found[op["trace_id"]].append(op)
    return found


def decode(tokens: float, keys: float, **more: Any) -> Row:
    """Return a call of a step that generates `tokens`, of one request each."""
    return {
        **{"packed": True, "phase": "decode", "n_q": tokens, "n_kv": None, "mask": "causal_br"},
        **{"implementation": "paged", "g_n": tokens, "g_sq": tokens, "g_sk": keys, "c_n": 0.0},
        **{"c_sq": 0.0, "c_sk": 0.0, "gen_tokens": tokens, "bound": "memory", **more},
    }


# Which calls are alike.


def test_alike_calls_are_one_operation_with_the_sums_of_their_times_and_work() -> None:
    work = {"flops": 2e9, "bytes": 1e6, "roofline_us": 4.0}
    (op,) = ops([{"us": us, **work} for us in (10.0, 20.0, 60.0)])
    assert (op["n_calls"], op["sum_us"], op["mean_us"]) == (3, 90.0, 30.0)
    assert (op["min_us"], op["max_us"], op["flops"], op["bytes"]) == (10.0, 60.0, 6e9, 3e6)
    assert op["std_us"] == pytest.approx(26.457513, rel=1e-6)
    assert op["flops_per_byte"] == 2000
    assert op["tflops"] == pytest.approx(6e9 / 90e-6 / 1e12)


def test_efficiency_counts_each_call_by_its_time_and_the_mean_of_shares_does_not() -> None:
    (op,) = ops([{"us": 10.0, "roofline_us": 9.0}, {"us": 90.0, "roofline_us": 9.0}])
    assert op["efficiency_pct"] == pytest.approx(18.0)
    assert op["mean_efficiency_pct"] == pytest.approx(50.0)


def test_calls_without_a_roofline_stay_out_of_the_efficiency_and_in_the_time() -> None:
    (op,) = ops([{"us": 10.0, "roofline_us": 5.0}, {"us": 90.0, "roofline_us": None}])
    assert (op["n_rated"], op["n_calls"], op["efficiency_pct"]) == (1, 2, 50.0)
    assert op["sum_us"] == 100.0


DIFFERENCES: tuple[Row, ...] = (
    {"operator": "flash::other"},
    {"direction": "bwd"},
    {"implementation": "standard"},
    {"library": "Other"},
    {"phase": "prefill"},
    {"batch": 2.0},
    {"n_q": 512.0},
    {"n_kv": 512.0},
    {"h_q": 16.0},
    {"h_kv": 1.0},
    {"d_qk": 128.0},
    {"d_v": 128.0},
    {"q_dtype": "fp16"},
    {"kv_dtype": "fp8_e4m3"},
    {"mask": "causal_br"},
    {"mask": "window", "window_size": 128.0},
    {"bias_elements": 4096.0},
    {"latent": True},
    {"kernel": "other_kernel"},
)


def test_calls_that_compute_something_else_are_another_operation() -> None:
    found = each({str(row): [{}, {}, {**row, "us": 5.0}] for row in DIFFERENCES})
    assert {name: [op["n_calls"] for op in listed] for name, listed in found.items()} == {
        str(row): [2, 1] for row in DIFFERENCES
    }


def test_packed_calls_of_steps_of_any_load_are_one_operation_with_means_of_their_lengths() -> None:
    loads = [(4.0, 4000.0), (4.0, 4004.0), (8.0, 9000.0)]
    (op,) = ops([decode(n, keys, bytes=keys * 1000) for n, keys in loads])
    assert (op["n_calls"], op["n_q"], op["n_kv"]) == (3, pytest.approx(16 / 3), 17004 / 3)
    assert op["bytes"] == 17_004_000
    assert op["n_requests"] == pytest.approx(16 / 3)


def test_a_cache_that_grows_token_by_token_is_one_operation() -> None:
    calls = [{"n_q": 1.0, "n_kv": float(n), "phase": "decode"} for n in range(100, 110)]
    (op,) = ops(calls)
    assert (op["n_calls"], op["n_kv"]) == (10, 104.5)


def test_keys_of_an_encoder_are_no_cache_that_grows() -> None:
    grows = [{"n_q": 1.0, "n_kv": float(n), "phase": "decode"} for n in range(100, 110)]
    fixed = [{"n_q": 1.0, "n_kv": 1500.0, "phase": "decode", "us": 20.0} for _ in range(10)]
    assert [(op["n_calls"], op["n_kv"]) for op in ops([*grows, *fixed])] == [
        (10, 1500.0),
        (10, 104.5),
    ]


def test_a_few_lengths_of_decoding_are_no_growing_cache() -> None:
    calls = [{"n_q": 1.0, "n_kv": n, "phase": "decode"} for n in (100.0, 200.0)]
    assert len(ops(calls)) == 2


# Layers that nothing but their times tell apart.


def alternating(long: Sequence[int], layers: int, passes: int = 1, **more: Any) -> list[Row]:
    """Return a call a layer, those of `long` layers three times as long."""
    return [
        {
            **{"us": 30.0 + layer / 100 if layer in long else 10.0 + layer / 100},
            **{"pass_no": pass_no, "loop_no": 0, "layer_no": layer, "region": "layer"},
            **{"mask_source": "family", "mask": "causal_br", **more},
        }
        for pass_no in range(passes)
        for layer in range(layers)
    ]


@pytest.mark.parametrize("known", [True, False], ids=["layers", "order"])
@pytest.mark.parametrize("every", [2, 3, 6])
def test_layers_that_take_turns_are_operations_of_their_own(every: int, known: bool) -> None:
    calls = alternating(range(1, 24, every), 24)
    if not known:
        calls = [{**call, "pass_no": None, "layer_no": None, "region": None} for call in calls]
    found = ops(calls)
    assert [(op["n_calls"], op["layer_class"]) for op in found if op["mean_us"] > 20] == [
        (24 // every, "variant A")
    ]
    assert [(op["n_calls"], op["layer_class"]) for op in found if op["mean_us"] < 20] == [
        (24 - 24 // every, "variant B")
    ]
    if known and every == 2:
        assert [op["layers"] for op in found] == ["1,3,..,23", "0,2,..,22"]


def test_layers_of_a_known_mask_keep_its_name() -> None:
    found = ops(alternating(range(0, 8, 2), 8, mask_source="argument"))
    assert [op["layer_class"] for op in found] == ["full A", "full B"]


def test_a_layer_that_is_long_in_every_pass_is_one_of_its_own() -> None:
    found = ops(alternating([0], 12, passes=3))
    assert sorted((op["n_calls"], op["layers"]) for op in found) == [(3, "0"), (33, "1-11")]


def test_one_slow_call_is_no_layer_of_its_own() -> None:
    (op,) = ops(alternating([0], 12))
    assert (op["n_calls"], op["layer_class"], op["layers"]) == (12, "full", "0-11")


def test_calls_that_are_long_at_random_stay_together() -> None:
    chance = random.Random(7)
    calls = alternating([], 12, passes=4)
    for call in chance.sample(calls, 12):
        call["us"] = 30.0
    assert len(ops(calls)) == 1


def test_kinds_of_layers_are_told_apart_though_the_cache_grows_fourfold() -> None:
    calls = alternating(range(0, 12, 2), 12, passes=4)
    for call in calls:
        call["us"] *= 1 + call["pass_no"]
    assert sorted(op["n_calls"] for op in ops(calls)) == [24, 24]


def test_layer_classes_are_named_by_mask_and_lengths() -> None:
    calls = [
        {"us": 60.0, "mask": "causal_br"},
        {"us": 50.0, "mask": "window", "window_size": 128.0},
        {"us": 40.0, "n_kv": 77.0},
        {"us": 30.0, "implementation": "linear"},
        {"us": 20.0, "mask": "topk", "top_k": 2048.0},
        {"us": 10.0, "implementation": "cache", "flops": 0.0},
    ]
    assert [op["layer_class"] for op in ops(calls)] == [  # type: ignore[arg-type]
        *("full", "window", "cross", "linear", "sparse", None)
    ]


def test_the_order_of_layers_in_a_trace_changes_no_operation() -> None:
    calls = alternating(range(1, 24, 2), 24, passes=2)
    shuffled = random.Random(3).sample(calls, len(calls))
    keys = ("layer_class", "n_calls", "layers", "sum_us", "pct_of_attention")
    one, other = ops(calls), ops(shuffled)
    assert [[op[key] for key in keys] for op in one] == [
        [pytest.approx(op[key]) for key in keys] for op in other
    ]


def test_two_equal_traces_double_sums_and_keep_percentages() -> None:
    calls = [{"us": 10.0, "roofline_us": 3.0}, {"us": 5.0, "n_q": 64.0, "roofline_us": 1.0}]
    one, two = ops(calls, extra_us=15.0), ops([*calls, *calls], extra_us=30.0)
    for before, after in zip(one, two, strict=True):
        for key in ("sum_us", "flops", "bytes", "roofline_us", "n_calls"):
            assert after[key] == pytest.approx(2 * before[key])
        for key in ("efficiency_pct", "pct_of_busy", "pct_of_wall", "pct_of_attention", "mean_us"):
            assert after[key] == pytest.approx(before[key])


# Shares and ratios.


def test_shares_are_of_attention_of_busy_and_of_wall_time() -> None:
    one, other = ops([{"us": 30.0}, {"us": 10.0, "n_q": 1.0}], extra_us=40.0, span_us=160.0)
    assert [one[key] for key in ("pct_of_attention", "pct_of_wall")] == [75.0, 18.75]
    assert one["pct_of_busy"] == pytest.approx(100 * 30 / 80.001)
    assert other["pct_of_attention"] == 25.0


def test_time_beside_the_kernels_that_attend_is_overhead() -> None:
    (op,) = ops([{"us": 30.0, "parts": [("copy", "copy", 10.0), ("combine", "reduce", 5.0)]}])
    assert (op["sum_us"], op["core_us"], op["overhead_us"]) == (45.0, 35.0, 10.0)


def test_workload_is_by_tokens_with_strict_limits() -> None:
    expected = {
        (81.0, 19.0): "prefill_heavy",
        (80.0, 20.0): "mixed",
        (20.0, 80.0): "mixed",
        (19.0, 81.0): "decode_heavy",
        (None, 5.0): "decode_heavy",
        (5.0, None): "prefill_heavy",
        (None, None): "unknown",
    }
    found = each({str(pair): {"ctx_tokens": pair[0], "gen_tokens": pair[1]} for pair in expected})
    assert {pair: found[str(pair)][0]["workload"] for pair in expected} == expected


def test_tokens_flops_and_bytes_split_each_on_their_own() -> None:
    (op,) = ops(
        [
            {"ctx_tokens": 8155.0, "gen_tokens": 37.0, "ctx_flops": 99.0, "gen_flops": 1.0}
            | {"ctx_bytes": 20.0, "gen_bytes": 80.0}
        ]
    )
    assert op["ctx_ratio"] == pytest.approx(8155 / 8192)
    assert (op["ctx_flops_ratio"], op["gen_bytes_ratio"]) == (0.99, 0.8)


def test_patterns_of_heads() -> None:
    expected = {(8, 8): ("MHA", 1), (8, 2): ("GQA", 4), (12, 8): ("GQA", 1.5), (8, 1): ("MQA", 8)}
    found = each(
        {str(heads): {"h_q": float(heads[0]), "h_kv": float(heads[1])} for heads in expected}
    )
    got = {heads: found[str(heads)][0] for heads in expected}
    assert {heads: (op["pattern"], op["gqa_ratio"]) for heads, op in got.items()} == expected


def test_one_latent_tensor_is_mla() -> None:
    (op,) = ops([{"h_q": 16.0, "h_kv": 1.0, "latent": True}])
    assert op["pattern"] == "MLA"


# What to expect of a length.


def test_the_band_is_linear_in_the_logarithm_of_the_length() -> None:
    expected = {
        100: (5, 15),
        512: (5, 15),
        724.0773: (12.5, 27.5),
        1024: (20, 40),
        2048: (40, 60),
        2896.3094: (45, 65),
        4096: (50, 70),
        32768: (50, 70),
    }
    found = each(
        {
            str(length): {"n_q": 64.0, "n_kv": length}
            | {"pairs_lo": 64.0 * length, "pairs_hi": 64.0 * length}
            for length in expected
        }
    )
    for length, band in expected.items():
        op = found[str(length)][0]
        assert (op["band_lo"], op["band_hi"]) == pytest.approx(band, rel=1e-6)


def test_a_causal_mask_has_the_band_of_its_length() -> None:
    pairs = 1024 * 1025 / 2
    (op,) = ops([{"mask": "causal_br", "pairs_lo": pairs, "pairs_hi": pairs, "roofline_us": 3.0}])
    assert op["band_lo"] == pytest.approx(20, abs=0.05)
    assert op["in_band"] is True


def test_a_batch_does_not_lengthen_a_sequence() -> None:
    (op,) = ops([{"batch": 4.0, "pairs_lo": 4 * 1024.0**2, "pairs_hi": 4 * 1024.0**2}])
    assert op["band_lo"] == pytest.approx(20)


def test_few_tiles_lower_what_to_expect_and_backward_passes_do_too() -> None:
    (few,) = ops([{"roofline_us": 2.0, "tile_us": 8.0}])
    assert (few["band_lo"], few["band_adj_lo"]) == (20.0, 5.0)
    (back,) = ops([{"direction": "bwd", "roofline_us": 2.0}])
    assert (back["band_lo"], back["band_hi"]) == (16.0, 32.0)


def test_decoding_has_no_band() -> None:
    (op,) = ops([decode(4.0, 4000.0, roofline_us=3.0)])
    assert (op["band_lo"], op["in_band"]) == (None, None)


# Names, kernels, shares of the trace.


def test_an_operation_is_called_by_operator_or_kernels_or_rule() -> None:
    calls = [
        {"us": 30.0},
        {"us": 20.0, "operator": None, "kernel": "k3d", "parts": [("combine", "reduce", 1.0)]},
        {"us": 5.0, "operator": None, "implementation": "cache", "family": "kv_write"}
        | {"parts": [("kv_write", "store", 1.0)]},
    ]
    found = ops(calls)  # type: ignore[arg-type]
    assert [op["operation"] for op in found[:2]] == ["flash::fwd", "k3d + reduce"]


def test_kernels_have_their_share_by_time_however_often_they_run() -> None:
    often = [{"us": 9.0} for _ in range(9)]
    once = {"us": 9.0, "parts": [("copy", "copy", 10.0)]}
    with made_ops([*often, once], ("attention_op_kernels",)) as connection:
        found = rows_of(connection, "from attention_op_kernels order by sum_us desc")
    assert [(row["role"], row["n_launches"], row["sum_us"], row["op_pct"]) for row in found] == [
        ("core", 10, 90.0, 90.0),
        ("copy", 1, 10.0, 10.0),
    ]


def test_shares_of_trace_passes_and_layer_types() -> None:
    calls = alternating([], 2, passes=2)
    passes = [
        {"trace_id": "t", "pass_no": 0, "phase": "prefill", "busy_ns": 40_000, "wall_ns": 50_000},
        {"trace_id": "t", "pass_no": 1, "phase": "decode", "busy_ns": 30_000, "wall_ns": 30_000},
    ]
    layers = [
        {"trace_id": "t", "pass_no": pass_no, "loop_no": 0, "layer_no": layer}
        | {"layer_type": "FULL" if layer else "SLIDE", "busy_ns": 15_000, "wall_ns": 15_000}
        for pass_no in range(2)
        for layer in range(2)
    ]
    with made_ops(
        calls, ("attention_shares",), extra_us=40.0, passes=passes, layers=layers
    ) as connection:
        found = rows_of(connection, "from attention_shares order by scope_order, position")
    assert [(row["scope"], row["of"], row["n_calls"], row["n_parts"]) for row in found] == [
        ("trace", "all", 4, 1),
        ("pass phase", "decode", 2, 1),
        ("pass phase", "prefill", 2, 1),
        ("layer type", "FULL", 2, 2),
        ("layer type", "SLIDE", 2, 2),
        ("pass", "0 prefill", 2, 1),
        ("pass", "1 decode", 2, 1),
    ]
    assert found[0]["busy_pct"] == pytest.approx(100 * 40.02 / 80.02)
    assert found[2]["busy_pct"] == pytest.approx(100 * 20.01 / 40)
    assert found[3]["attention_ms"] == pytest.approx(0.02002)


def test_activities_that_overlap_count_once_in_a_share() -> None:
    both = [
        {"trace_id": "t", "event_id": number, "gpu_index": number, "pid": "0", "device": 0}
        | {"start_ns": 5000 * number, "end_ns": 5000 * number + 10_000, "call_no": 0}
        | {"selected": True, "kind": "kernel", "name": "k", "role": "core", "dur_ns": 10_000}
        for number in range(2)
    ]
    with made_ops(
        [{}], ("attention_shares",), activities=both, attention_activities=both
    ) as connection:
        (row,) = rows_of(connection, "from attention_shares")
    assert (row["attention_ms"], row["busy_pct"]) == (0.015, 100.0)


def test_kernels_that_attend_without_a_call_are_counted() -> None:
    names = [{"trace_id": "t", "name": name, "role": "core"} for name in ("flash_kernel", "gemm")]
    with made_ops(
        [{}, {}], ("attention_coverage",), extra_us=7.0, attention_names=names
    ) as connection:
        (row,) = rows_of(connection, "from attention_coverage")
    assert (row["n_named"], row["n_uncovered"], row["uncovered_ms"]) == (3, 1, 0.007)
    assert row["uncovered"] == ["gemm"]


def test_a_trace_without_attention_has_a_share_of_none() -> None:
    with made_ops([], ("attention_shares", "attention_ops"), extra_us=7.0) as connection:
        (row,) = rows_of(connection, "from attention_shares")
        assert rows_of(connection, "from attention_ops") == []
    assert (row["n_calls"], row["attention_ms"], row["busy_pct"]) == (0, 0.0, 0.0)
