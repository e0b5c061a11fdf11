"""Macros for users and views: pairs, keys, FLOPs and bytes, against counting pair by pair."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pair_counts as count
import pytest

from trace_sql.database import Database
from trace_sql.macros import macro_names, macro_sql, macros_in, make_macros
from trace_sql.store import Settings, Store

ROOT = Path(__file__).resolve().parents[1]
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
