"""The quick SELECT of events by itself: what it holds exactly, and what it refuses."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql.event_sql import MARK, careful_sql, epoch_of, quick_sql

EPOCH = 1_767_225_600_123_456
HOURS_US = 3_600_000_000


def read(events: list[str]) -> list[tuple[Any, Any]]:
    """Return ts_ns and dur_ns of each event; raises where the careful SELECT is needed."""
    piece = MARK.join(events)
    sql = quick_sql("t", "select ?::VARCHAR as piece", "", epoch=epoch_of(piece.encode()))
    # What it refuses shows in `extra`.
    rows = duckdb.execute(f"select ts_ns, dur_ns, extra from ({sql})", [piece]).fetchall()
    return [(ts, dur) for ts, dur, _ in rows]


def both(events: list[str]) -> tuple[list[Any], list[Any]]:
    """Return the rows of the quick and of the careful SELECT."""
    pieces = "select ?::VARCHAR as piece"
    quick = quick_sql("t", pieces, "", epoch=epoch_of(MARK.join(events).encode()))
    careful = careful_sql("t", pieces)
    return (
        duckdb.execute(quick, [MARK.join(events)]).fetchall(),
        duckdb.execute(careful, [",".join(events)]).fetchall(),
    )


def nanoseconds(digits: str) -> int:
    exact = json.loads(digits, parse_float=Decimal, parse_int=Decimal) * 1000
    assert exact == int(exact)
    return int(exact)


@pytest.mark.parametrize(
    "ts",
    [
        f"{EPOCH}.001",
        f"{EPOCH + HOURS_US}.999",
        f"{EPOCH - 2 * HOURS_US}.5",
        # Beyond what stands near the first time, on both sides.
        f"{EPOCH + 5 * HOURS_US}.123",
        f"{EPOCH - 5 * HOURS_US}",
        "0",
        "12.125",
        "1.7672256001234561e15",
        f'"{EPOCH}.789"',
    ],
)
def test_times_since_1970_are_read_from_the_digits(ts: str) -> None:
    first = f'{{"ph": "X", "ts": {EPOCH}.789, "dur": 1.5}}'
    rows = read([first, f'{{"ph": "X", "ts": {ts}, "dur": 0.001}}'])
    assert rows == [(EPOCH * 1000 + 789, 1500), (nanoseconds(ts.strip('"')), 1)]


@pytest.mark.parametrize("ts", [f"{EPOCH}.0001", f"{EPOCH + 5 * HOURS_US}.0001", "true", "1e30"])
def test_times_since_1970_that_no_nanosecond_holds(ts: str) -> None:
    with pytest.raises(duckdb.Error):
        read([f'{{"ph": "X", "ts": {EPOCH}.789}}', f'{{"ph": "X", "ts": {ts}}}'])


@settings(max_examples=40, deadline=None)
@given(
    # Beyond, no time is left around it that a column holds.
    start=st.integers(10**16, 8 * 10**18),
    offsets=st.lists(st.integers(-(10**14), 10**14), min_size=1, max_size=30),
    durations=st.lists(st.integers(0, 8 * 10**15), min_size=30, max_size=30),
)
def test_any_nanosecond_comes_through(start: int, offsets: list[int], durations: list[int]) -> None:
    times = [start, *(max(0, min(start + one, 9 * 10**18)) for one in offsets)]
    pairs = list(zip(times, [*durations, 0], strict=False))
    events = [
        f'{{"ts": {ts // 1000}.{ts % 1000:03d}, "dur": {dur // 1000}.{dur % 1000:03d}}}'
        for ts, dur in pairs
    ]
    assert read(events) == pairs


@pytest.mark.parametrize(
    "args",
    [
        '"stream": 1.5',
        '"device": true',
        '"correlation": 9007199254740993',
        '"external id": 7',
        '"x": nan',
        '"x": [1, -Infinity]',
        '"x": [nan, 1]',
        '"x": [1, 2,]',
        '"x": 1,',
    ],
)
def test_arguments_that_need_care(args: str) -> None:
    with pytest.raises(duckdb.Error):
        read(['{"ph": "X", "args": {"a": 1}}', f'{{"ph": "X", "args": {{{args}}}}}'])


@pytest.mark.parametrize(
    "args",
    [
        '"stream": 7, "device": -1, "correlation": "12"',
        '"x": true, "y": [false, null], "z": "nan"',
        '"External id": 3, "x": ["inf", "[nan"]',
        '"x": 1.5, "y": {"device": 1.5}',
    ],
)
def test_arguments_that_need_none(args: str) -> None:
    assert read([f'{{"ph": "X", "args": {{{args}}}}}'])


@pytest.mark.parametrize(
    "value",
    ["7", "7.0", "1e3", "-0", "null", '"7"', '"1e3"', '"1_000"', '" 12 "', '"\\t7"', '"+7"', '"1."']
    + ['"007"', '"0x7"', '"seven"', '"true"', '""', "[7]", '{"a": 7}'],
)
def test_an_id_is_the_same_with_and_without_care(value: str) -> None:
    keys = ("device", "stream", "correlation", "External id", "Python id", "Python parent id")
    args = ", ".join(f'"{key}": {value}' for key in keys)
    quick, careful = both([f'{{"ph": "X", "ts": 1, "args": {{{args}}}}}'])
    assert quick == careful


@pytest.mark.parametrize(
    "large",
    ["1767225600123456789", "99999999999999999", "9300000000000001", "-1767225600123456789"]
    + ["9" * 5000],
)
def test_a_number_that_is_no_time_changes_no_other(large: str) -> None:
    for inner in (large, f'"{large}"'):
        named = f'{{"ph": "M", "args": {{"name": "x", "ts": {inner}}}}}'
        for ts in (f"{EPOCH}.789", "12.789"):
            piece = MARK.join([named, f'{{"ph": "X", "ts": {ts}}}'])
            sql = quick_sql("t", "select ?::VARCHAR as piece", "", epoch=epoch_of(piece.encode()))
            try:
                rows = duckdb.execute(f"select typeof(ts_ns), ts_ns, extra from ({sql})", [piece])
                read_all = rows.fetchall()
            except duckdb.Error:
                # Left to the careful reading; of a string nothing is.
                assert inner == large
                continue
            assert [row[0] for row in read_all] == ["BIGINT"] * 2
            assert read_all[1][1] == nanoseconds(ts)


@pytest.mark.parametrize("ts", ["9000000000000000.001", "9300000000000001", "99999999999999999"])
def test_a_time_that_no_column_holds_is_left_to_care(ts: str) -> None:
    with pytest.raises(duckdb.Error):
        read([f'{{"ph": "X", "ts": {EPOCH}.5}}', f'{{"ph": "X", "ts": {ts}}}'])
    with pytest.raises(duckdb.Error):
        read([f'{{"ph": "X", "ts": {ts}}}'])
