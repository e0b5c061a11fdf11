"""Attention of two traces compared: what is matched, at which scope, and what it would gain."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pytest
from view_tables import columns, computed, rows_of

VIEWS = ("attention_matches", "match_notes", "comparative_findings", "comparative_members")
OP: dict[str, Any] = {
    "direction": "fwd",
    "implementation": "flash",
    "operator": "aten::_flash",
    "library": "flash-attn",
    "layer_class": "full",
    "layers": "0-11",
    "kernel_names": ["flash_fwd"],
    "batch": 4.0,
    "n_q": 197.0,
    "n_kv": 197.0,
    "h_q": 12.0,
    "h_kv": 12.0,
    "d_qk": 64.0,
    "d_v": 64.0,
    "q_dtype": "bf16",
    "kv_dtype": "bf16",
    "mask": "dense",
    "bias_elements": 0.0,
    "latent": False,
    "packed": False,
    "n_calls": 12,
    "n_passes": 1,
    "sum_us": 120.0,
    "flops": 12e9,
    "bound": "memory",
    "gpu": "H100 SXM",
    "efficiency_pct": 10.0,
    "anomaly": False,
    "pct_of_wall": 20.0,
}


def op(**more: Any) -> dict[str, Any]:
    """Return an operation; its roofline follows from time and efficiency."""
    row = {**OP, **more}
    if row["efficiency_pct"] is not None:
        row["roofline_us"] = row["efficiency_pct"] / 100 * row["sum_us"]
    return row


def paged(**more: Any) -> dict[str, Any]:
    """Return decode calls of a cache, whose lengths no shape tells."""
    sizes = {"packed": True, "phase": "decode", "mask": "causal_br", "batch": 1.0, "h_kv": 2.0}
    return op(**{**sizes, "n_q": 32.0, "n_kv": None, "implementation": "paged", **more})


@contextlib.contextmanager
def compared(
    one: Sequence[Mapping[str, Any]], two: Sequence[Mapping[str, Any]]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with the views over operations of traces a and b, compared both ways."""
    listed = [
        {**row, "trace_id": trace, "op_no": number}
        for trace, ops in (("a", one), ("b", two))
        for number, row in enumerate(ops)
    ]
    assert all(row.keys() <= columns("attention_ops").keys() for row in listed)
    pairs = [dict(zip(columns("trace_pairs"), pair, strict=True))
             for pair in itertools.product("ab", repeat=2)]  # fmt: skip
    with computed({"attention_ops": listed, "trace_pairs": pairs}, VIEWS) as connection:
        yield connection


def matches(
    one: Sequence[Mapping[str, Any]], two: Sequence[Mapping[str, Any]], pair: str = "ab"
) -> list[dict[str, Any]]:
    sql = "from attention_matches join match_notes using (trace_id, other_trace_id, match_no)"
    return of_pair(one, two, pair, f"select * {sql}", "match_no")


def findings(
    one: Sequence[Mapping[str, Any]], two: Sequence[Mapping[str, Any]], pair: str = "ab"
) -> list[dict[str, Any]]:
    return of_pair(one, two, pair, "from comparative_findings", "rank")


def of_pair(
    one: Sequence[Mapping[str, Any]],
    two: Sequence[Mapping[str, Any]],
    pair: str,
    sql: str,
    order: str,
) -> list[dict[str, Any]]:
    with compared(one, two) as connection:
        return rows_of(
            connection,
            f"select * from ({sql}) where trace_id = ? and other_trace_id = ? order by {order}",
            pair,
        )


MIXED = [
    op(),
    op(n_q=4096.0, n_kv=4096.0, sum_us=900.0, efficiency_pct=50.0, bound="compute"),
    op(n_q=4096.0, n_kv=77.0, layer_class="cross", sum_us=60.0, mask="dense"),
    paged(),
    paged(layer_class="window", window_size=128.0, mask="window", sum_us=33.0),
    op(layer_class="full A", layers="0,2", h_q=8.0, h_kv=8.0, sum_us=70.0),
    op(layer_class="full B", layers="1,3", h_q=8.0, h_kv=8.0, sum_us=20.0),
    op(direction="bwd", sum_us=240.0),
    op(implementation="cache", packed=True, n_q=32.0, flops=0.0, sum_us=7.0, operator="store"),
    op(h_q=None, d_qk=None, operator=None, kernel_names=["mystery"], flops=None)
    | {"efficiency_pct": None, "roofline_us": None},
]


def test_a_trace_is_at_parity_with_itself() -> None:
    rows = matches(MIXED, [], "aa")
    assert len(rows) == len(MIXED)
    assert {row["efficiency_pct"] for row in rows} == {100}
    assert {row["difference_us"] for row in rows} == {0}
    assert {row["level"] for row in rows} == {1}
    assert all(row["op_nos"] == row["other_op_nos"] for row in rows)
    notes = {row["note"] for row in rows}
    assert notes == {None, "no shapes: matched by the names of kernels"}
    assert findings(MIXED, [], "aa") == []


def test_swapped_traces_give_inverse_ratios() -> None:
    other = [{**row, "sum_us": row["sum_us"] * 1.7, "flops": row["flops"]} for row in MIXED]
    there, back = matches(MIXED, other), matches(MIXED, other, "ba")
    inverse = {tuple(row["op_nos"]): 1 / row["time_ratio"] for row in back}
    assert {tuple(row["op_nos"]): row["time_ratio"] for row in there} == pytest.approx(inverse)
    works = {tuple(row["op_nos"]): 1 / row["work_ratio"] for row in back}
    assert {tuple(row["op_nos"]): row["work_ratio"] for row in there} == pytest.approx(works)


def test_what_one_trace_lacks_is_unmatched_and_no_gain() -> None:
    rows = matches([op(), op(d_qk=128.0, sum_us=50.0)], [op(), op(h_q=99.0)])
    assert [row["level"] for row in rows] == [1, None, None]
    lacking, extra = rows[1:]
    assert lacking["note"] == "not in trace 2"
    assert lacking["op_nos"] == [1]
    assert lacking["efficiency_pct"] is lacking["other_sum_us"] is lacking["time_ratio"] is None
    assert extra["note"] == "not in trace 1"
    assert extra["other_op_nos"] == [1]
    assert extra["sum_us"] is extra["efficiency_pct"] is None
    assert findings([op()], []) == []


def test_the_ratio_splits_into_hardware_and_kernels() -> None:
    # Rooflines of 0.9134 and 1.4452 us; the slower memory holds the better kernels.
    calls = 12
    one = op(sum_us=31.22 * calls, efficiency_pct=100 * 0.9134 / 31.22, gpu="MI300X")
    two = op(sum_us=10.237 * calls, efficiency_pct=100 * 1.4452 / 10.237)
    (row,) = matches([one], [two])
    assert row["time_ratio"] == pytest.approx(10.237 / 31.22)
    assert row["floor_ratio"] == pytest.approx(1.4452 / 0.9134)
    assert row["quality_ratio"] == pytest.approx(row["time_ratio"] * 0.9134 / 1.4452)
    assert row["note"] == "MI300X to H100 SXM"
    assert not row["is_capped"]


def test_counts_are_compared_per_call() -> None:
    (row,) = matches([op()], [op(n_calls=36, n_passes=3, sum_us=180.0)])
    assert row["efficiency_pct"] == pytest.approx(50)
    assert row["other_scaled_us"] == pytest.approx(60)
    assert row["difference_us"] == pytest.approx(-60)
    assert row["pass_us"] == pytest.approx(120)
    assert row["other_pass_us"] == pytest.approx(60)


def test_loads_are_compared_at_the_same_work() -> None:
    one, two = paged(flops=12e9, sum_us=100.0), paged(flops=24e9, sum_us=100.0, n_q=64.0)
    (row,) = matches([one], [two])
    assert row["work_ratio"] == pytest.approx(0.5)
    assert row["efficiency_pct"] == pytest.approx(50)
    assert row["note"] == "a call of trace 2 does 2 times the work"
    unknown = matches([one], [paged(flops=None)])[0]
    assert unknown["work_ratio"] == 1
    assert unknown["note"] == "loads not known: calls compared as they are"


def test_a_cache_is_written_by_the_token_whatever_its_type() -> None:
    write: dict[str, Any] = {"implementation": "cache", "packed": True, "flops": 0.0}
    one, two = op(**write, n_q=32.0), op(**write, n_q=64.0, kv_dtype="fp8_e4m3", sum_us=60.0)
    (row,) = matches([one], [two])
    assert (row["work_ratio"], row["efficiency_pct"]) == (0.5, 25)
    assert "a call of trace 2 does 2 times the work" in row["note"]
    (unknown,) = matches([op(**write, n_q=None)], [two])
    assert "loads not known" in unknown["note"]


def test_a_smaller_cache_type_is_a_gain_and_no_other_load() -> None:
    (row,) = matches([paged()], [paged(kv_dtype="fp8_e4m3", sum_us=60.0)])
    assert row["efficiency_pct"] == pytest.approx(50)
    assert row["note"] == "keys bf16 to fp8_e4m3" or "fp8_e4m3" in row["note"]


def test_windowed_layers_are_not_compared_with_full_ones() -> None:
    window = paged(layer_class="window", mask="window", window_size=128.0)
    assert [row["level"] for row in matches([window], [paged()])] == [None, None]


def test_kinds_of_layers_go_by_letter_where_both_have_as_many() -> None:
    slow, fast = (
        op(layer_class="full A", layers="0"),
        op(layer_class="full B", layers="1", sum_us=60.0),
    )
    same = matches([slow, fast], [{**slow, "layers": "2"}, {**fast, "layers": "3"}])
    assert [(row["op_nos"], row["other_op_nos"], row["level"]) for row in same] == [
        ([0], [0], 2),
        ([1], [1], 2),
    ]
    (merged,) = matches([slow, fast], [op(n_calls=24, sum_us=90.0)])
    assert merged["op_nos"] == [0, 1]
    assert merged["other_op_nos"] == [0]
    assert merged["efficiency_pct"] == pytest.approx(50)


def test_unfused_attention_meets_fused_attention_of_another_mask() -> None:
    unfused = op(implementation="unfused", operator=None, h_kv=12.0)
    causal = op(mask="causal_tl", sum_us=30.0)
    (row,) = matches([unfused], [causal])
    assert row["efficiency_pct"] == pytest.approx(25)
    assert "mask dense to causal_tl" in row["note"]
    assert [row["level"] for row in matches([op()], [causal])] == [None, None]


def test_repeated_key_heads_meet_grouped_ones() -> None:
    (row,) = matches([op()], [op(h_kv=3.0)])
    assert row["level"] == 5
    assert row["note"] == "12 to 3 key heads in memory"


def test_trace_1_cannot_gain_more_than_its_own_roofline_gives() -> None:
    (row,) = matches([op(efficiency_pct=40.0)], [op(sum_us=12.0, efficiency_pct=90.0)])
    assert row["time_ratio"] == pytest.approx(0.1)
    assert row["efficiency_pct"] == pytest.approx(40)
    assert row["is_capped"]
    assert "beyond the roofline" in row["note"]


def test_an_impossible_share_caps_nothing() -> None:
    (row,) = matches([op(efficiency_pct=160.0, anomaly=True)], [op(sum_us=60.0)])
    assert row["efficiency_pct"] == pytest.approx(50)
    assert row["roofline_pct"] is row["floor_ratio"] is None


def test_findings_are_grouped_gated_and_ranked() -> None:
    one = [
        op(pct_of_wall=10.0),
        op(n_q=512.0, n_kv=512.0, pct_of_wall=8.0),
        op(n_q=4096.0, n_kv=4096.0, pct_of_wall=30.0, bound="compute", efficiency_pct=30.0),
        op(direction="bwd", pct_of_wall=1.0),
        op(h_q=3.0, h_kv=3.0, pct_of_wall=50.0, library="slower"),
    ]
    two = [{**row, "sum_us": row["sum_us"] / 2} for row in one[:4]]
    two.append({**one[4], "sum_us": 2 * one[4]["sum_us"]})
    found = findings(one, two)
    assert [(row["bound_type"], row["library"], row["n_members"]) for row in found] == [
        ("compute", "flash-attn", 1),
        ("memory", "flash-attn", 2),
    ]
    compute, memory = found
    assert compute["impact_score_high"] == 15.0
    assert (memory["impact_score_low"], memory["impact_score"], memory["impact_score_high"]) == (
        3.75 + 3.0,
        4.38 + 3.5,
        9.0,
    )
    assert {row["eff_bucket"] for row in found} == {"all"}
    assert [row["rank"] for row in found] == [1, 2]
    members = of_pair(one, two, "ab", "from comparative_members", "rank, match_no")
    assert [(row["rank"], row["op_no"]) for row in members] == [(1, 2), (2, 0), (2, 1)]
