"""Attention of a trace, and of the same trace changed in one way: what must follow, and no more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis
import pytest
import trace_edits as edits
from attention_lab import (
    BASES,
    FLOORS,
    GEMM,
    LATER,
    LENGTHS,
    RATES,
    SUMS,
    VIEWS,
    Lab,
    Row,
    Rows,
    alike,
    same,
    scaled,
    unchanged,
)
from attention_made import dense, work
from command_line import answer, command
from hypothesis import strategies as st

from trace_sql.database import Database
from trace_sql.store import Settings

# Changes that change nothing.


@pytest.mark.parametrize("base", ["bert", "decode"])
def test_the_time_at_which_a_trace_begins_changes_nothing(lab: Lab, base: str) -> None:
    unchanged(lab, base, lab.edited(base, edits.shifted(LATER)))


@pytest.mark.parametrize("base", BASES)
def test_ranges_around_everything_change_nothing(lab: Lab, base: str) -> None:
    unchanged(lab, base, lab.edited(base, edits.ranged("ProfilerStep#7", "my loop")))


@pytest.mark.parametrize(
    ("base", "pattern"),
    [("bert", "gemm|nvjet|cublas"), ("decode", "Cijk_|_moe_|matmul"), ("made", GEMM)],
)
def test_names_of_unrelated_kernels_change_nothing(lab: Lab, base: str, pattern: str) -> None:
    renamed = edits.renamed(lambda name: "blob_3" if re.search(pattern, name) else name)
    unchanged(lab, base, lab.edited(base, renamed))


@pytest.mark.parametrize("base", ["bert", "made"])
def test_a_call_of_two_kernels_takes_the_time_of_one(lab: Lab, base: str) -> None:
    halved = edits.halved("flash_fwd|flash_bwd|softmax|attention_3d")
    # One of 20 kernels of other lengths is another floor of a launch.
    but = {"n_activities", "n_named", "launch_us", *FLOORS}
    unchanged(lab, base, lab.edited(base, halved), but)


@pytest.mark.parametrize(
    ("base", "order", "pattern"),
    [
        ("bert", (2, 0, 1), "flash_fwd"),
        ("decode", (2, 1, 4, 3, 0, 5), "kernel_unified_attention"),
        ("made", (6, 1, 5, 3, 4, 2, 0, 7), "flash_fwd"),
    ],
)
def test_equal_layers_in_another_order_are_the_same_operations(
    lab: Lab, base: str, order: Sequence[int], pattern: str
) -> None:
    found = lab.edited(base, edits.in_order(order, pattern))
    for view in found.keys() - {"calls"}:
        same(view, found[view], lab.base(base)[view])
    times, known = (
        Counter((row["operator"], row["busy_ns"], row["bytes"]) for row in rows["calls"])
        for rows in (found, lab.base(base))
    )
    assert times == known


def test_a_rank_of_a_merged_file_is_what_it_is_alone(lab: Lab) -> None:
    unchanged(lab, "bert", lab.edited("bert", edits.of_ranks, pid="[TP01] 0"))


def test_traces_of_one_session_are_what_they_are_alone(lab: Lab) -> None:
    ids = {lab.store.ingest(lab.path(base)).trace_id: base for base in ("bert", "made")}
    with Database(lab.store, {trace_id: Settings() for trace_id in ids}) as db:
        for view, (sql, _) in VIEWS.items():
            rows = db.query(sql).dicts()
            for trace_id, base in ids.items():
                own = [row for row in rows if row["trace_id"] == trace_id]
                same(view, own, lab.base(base)[view])


# Times.


@pytest.mark.parametrize("base", ["decode", "made"])
def test_slower_kernels_have_lower_shares_of_the_same_rooflines(lab: Lab, base: str) -> None:
    found, known = lab.edited(base, edits.slower(2)), lab.base(base)
    for view in ("ops", "calls", "shares"):
        rows = scaled(scaled(known[view], LENGTHS, 2), RATES, 1 / 2)
        same(view, found[view], rows, FLOORS)
    for row, before in zip(found["calls"], known["calls"], strict=True):
        if before["floor_kind"] in ("compute", "memory") and row["floor_kind"] != "launch":
            assert row["floor_us"] == before["floor_us"]
        if before["floor_kind"] == "launch":
            assert row["floor_us"] == pytest.approx(2 * before["floor_us"])


@pytest.mark.parametrize("base", BASES)
def test_twice_the_same_doubles_sums_and_keeps_shares(lab: Lab, base: str) -> None:
    path = lab.copy(base, edits.twice)
    found, known = lab.answer(base, path), lab.base(base)
    kinds = [row for row in known["shares"] if row["scope"] != "pass"]
    of_walls = {"wall_ms", "wall_pct", "pct_of_wall"}
    same("ops", found["ops"], scaled(known["ops"], SUMS, 2), {"std_us", *of_walls})
    same(
        "shares",
        [row for row in found["shares"] if row["scope"] != "pass"],
        [
            row | {"n_parts": 1} if row["scope"] == "trace" else row
            for row in scaled(kinds, SUMS, 2)
        ],
        of_walls,
    )
    begin, end = edits.span(edits.activities(edits.read(path)))
    (whole,) = (row for row in found["shares"] if row["scope"] == "trace")
    assert whole["wall_ms"] == pytest.approx(float(end - begin) / 1000)
    for op in found["ops"]:
        assert op["pct_of_wall"] == pytest.approx(op["sum_us"] / float(end - begin) * 100)


# Arguments: each of four equal calls is changed in its own way.


def rewritten(place: int, old: str, new: str) -> Callable[[Row], None]:
    """Write `new` for the type or scalar `old` of an argument, or of all of them (-1)."""

    def change(args: Row) -> None:
        for key in ("Input type", "Concrete Inputs"):
            args[key] = [
                new if value == old and place in (-1, number) else value
                for number, value in enumerate(args[key])
            ]

    return change


def resized(place: int, factor: int) -> Callable[[Row], None]:
    """Multiply one size of all tensors."""

    def change(args: Row) -> None:
        for dims in args["Input Dims"]:
            if dims:
                dims[place] *= factor

    return change


def test_work_follows_the_arguments_of_a_real_call(lab: Lab) -> None:
    changes = (
        *(rewritten(-1, "c10::BFloat16", "float"), resized(0, 3), rewritten(4, "False", "True")),
        resized(2, 2),
    )
    called = edits.called("_scaled_dot_product_flash", *changes)
    # A kernel that names a type knows it better than the operator.
    unnamed = edits.renamed(lambda name: name.replace("bfloat16_t", "T"))
    found = lab.edited("bert", lambda trace: unnamed(called(trace)))["calls"]
    (flops, size), *others = {(row["flops"], row["bytes"]) for row in lab.base("bert")["calls"]}
    assert not others
    single, batch, causal, longer = found
    n = 141
    assert (single["flops"], single["bytes"]) == (flops, 2 * size)
    assert (batch["flops"], batch["bytes"]) == (3 * flops, 3 * size)
    assert (causal["flops"], causal["bytes"]) == (flops * (n + 1) / (2 * n), size)
    assert (longer["flops"], longer["bytes"]) == (4 * flops, 2 * size)
    assert single["busy_ns"] == lab.base("bert")["calls"][0]["busy_ns"]
    assert single["precision"] == "fp32"


SHAPES = st.lists(
    st.builds(
        dense,
        b=st.integers(1, 64),
        h=st.sampled_from([8, 16, 64]),
        n=st.integers(1, 20000),
        kv=st.integers(1, 20000),
        d=st.sampled_from([32, 64, 80, 128, 256]),
        mask=st.sampled_from(["dense", "causal_tl", "causal_br", "window", "chunked"]),
        window_size=st.integers(1, 5000).map(float),
        direction=st.sampled_from(["fwd", "bwd"]),
    ),
    min_size=1,
    max_size=30,
)


@hypothesis.settings(max_examples=8)
@hypothesis.given(SHAPES, st.integers(2, 50), st.sampled_from([2, 4, 8]))
def test_work_follows_the_shape(shapes: Sequence[Row], k: int, group: int) -> None:
    wide = {"q_dtype": "fp32", "kv_dtype": "fp32", "o_dtype": "fp32"}
    variants: list[Callable[[Row], Row]] = [
        lambda row: row,
        lambda row: row | {"batch": row["batch"] * k},
        lambda row: row | wide,
        lambda row: row | {"h_kv": row["h_q"] / group},
        lambda row: row | {"mask": "dense", "window_size": None},
        lambda row: row | {"mask": "causal_br", "window_size": None, "n_kv": row["n_q"]},
        lambda row: row | {"mask": "dense", "window_size": None, "n_kv": row["n_q"]},
    ]
    listed = work(*[float_sizes(change(row)) for row in shapes for change in variants])
    for number, row in enumerate(shapes):
        one, batch, single, grouped, dense_, causal, square = listed[7 * number : 7 * number + 7]
        backward = row["direction"] == "bwd"
        assert batch["flops"] == pytest.approx(k * one["flops"])
        assert batch["bytes"] == pytest.approx(k * one["bytes"])
        assert batch["pairs_hi"] == k * one["pairs_hi"]
        # Beside its tensors a backward reads two numbers of each row, of four bytes at any type.
        rows = row["batch"] * row["h_q"] * row["n_q"] * 8 if backward else 0
        assert single["flops"] == one["flops"]
        assert single["bytes"] - rows == pytest.approx(2 * (one["bytes"] - rows))
        assert grouped["flops"] == one["flops"]
        # Keys and values are read; a backward writes their gradients too.
        keys = (
            one["bytes"]
            - rows
            - row["batch"] * row["n_q"] * row["h_q"] * row["d_qk"] * 2 * (2 if not backward else 4)
        )
        assert one["bytes"] - grouped["bytes"] == pytest.approx(keys * (1 - 1 / group))
        assert one["flops"] <= dense_["flops"]
        n = row["n_q"]
        assert causal["flops"] * 2 * n == pytest.approx(square["flops"] * (n + 1))
        assert causal["bytes"] == square["bytes"]


def float_sizes(row: Row) -> Row:
    return {key: float(value) if isinstance(value, int) else value for key, value in row.items()}


# Peaks, by the command.


def operations(lab: Lab, path: Path, *options: object) -> Rows:
    shown = answer(command(lab.store.folder, "attention", path, *options, "--format", "json"))
    found: Rows = shown["operations"]
    return found


BY_PEAK = {"gpu", "peak_tflops", "peak_kind", "peak_status", "peak_note", "hbm_tb_s", "bound"}
BY_PEAK |= {"roofline_us", "tile_us", "floor_us", "floor_kind", "floor_efficiency_pct"}
BY_PEAK |= {"efficiency_pct", "mean_efficiency_pct", "core_efficiency_pct", "in_band", "anomaly"}
BY_PEAK |= {"measured_efficiency_pct", "band_adj_lo", "band_adj_hi", "n_anomalies", "problem"}


def test_another_gpu_changes_what_its_peaks_say_and_no_more(lab: Lab) -> None:
    path = lab.path("made")
    one, other = (operations(lab, path, "--gpu", gpu) for gpu in ("H100 SXM", "A100 80GB SXM"))
    changed = {key for row, pair in zip(one, other, strict=True)
               for key in row if not alike(row[key], pair[key])}  # fmt: skip
    assert changed <= BY_PEAK
    assert {"gpu", "peak_tflops", "hbm_tb_s", "roofline_us", "efficiency_pct"} <= changed
    for row, pair in zip(one, other, strict=True):
        if row["bound"] == pair["bound"] == "memory":
            assert pair["roofline_us"] == pytest.approx(row["roofline_us"] * 3.35 / 2.039)
        if row["bound"] == pair["bound"] == "compute":
            assert pair["roofline_us"] == pytest.approx(row["roofline_us"] * 989.4 / 312)


def test_the_measured_peak_scales_what_is_bound_by_it(lab: Lab) -> None:
    path = lab.shared("traces/torch_compile_triton.json.gz")
    (printed,), (measured,) = (
        operations(lab, path, "--peak", peak) for peak in ("datasheet", "measured")
    )
    ratio = 1307.4 / 708
    assert measured["roofline_us"] == pytest.approx(printed["roofline_us"] * ratio)
    assert measured["efficiency_pct"] == pytest.approx(printed["efficiency_pct"] * ratio)
    assert measured["efficiency_pct"] == pytest.approx(printed["measured_efficiency_pct"])
    changed = {key for key in printed if not alike(printed[key], measured[key])}
    assert changed <= BY_PEAK
