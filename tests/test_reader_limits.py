"""Texts too deep, too long, or of nothing: they are read, lost or refused, and soon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flattened import A, B, Read, check_at_once, cut_small, flattened, listed, names

from trace_sql import event_list, json_value
from trace_sql.errors import BadInputError, NotATraceError


@pytest.mark.parametrize("depth", [2000, 100_000])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    "deep", [b'{"ph":"X","args":{"a":%s}}', b'{"ph":"X","args":%s}', b'{"ph":"X","own":%s}']
)
def test_deep_event(
    depth: int, checked: bool, deep: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if checked:
        check_at_once(monkeypatch)
    nested = b'{"x":[' * (depth // 2) + b"]}" * (depth // 2)
    (tmp_path / "t.json").write_bytes(listed(A, deep % nested, B))
    out = tmp_path / "out"
    flat = flattened(tmp_path / "t.json", out)
    kept = [(row["args"] or row["extra"] or "").count("[") for row in flat.events]
    lost = sum(not loss["repaired"] for loss in flat.losses)
    assert len(flat.events) + lost == 3
    assert lost or kept == [0, depth // 2, 0]
    assert lost == 0 or depth == 100_000


@pytest.mark.parametrize("depth", [2000, 100_000])
def test_deep_metadata(depth: int, read: Read) -> None:
    nested = b"[" * depth + b"]" * depth
    (flat,) = read(b'{"a":%s,"b":1,"traceEvents":[%s,%s]}' % (nested, A, B))
    assert names(flat) == ["a", "b"]
    assert json.loads(flat.facts["metadata"])["b"] == 1


def test_value_beyond_the_limit_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_value, "MAX_BYTES", 5000)
    monkeypatch.setattr(event_list, "MAX_BYTES", 5000)
    cut_small(monkeypatch, 100, 100)
    monkeypatch.setattr(event_list, "_MAX_CUT", 1000)
    long = b'{"ph":"X","name":"%s"}' % (b"x" * 20_000)
    (tmp_path / "t.json").write_bytes(listed(A, long, B))
    flat = flattened(tmp_path / "t.json", tmp_path / "out")
    assert names(flat)[0] == "a"
    assert len(flat.events) + flat.facts["n_lost"] >= 2
    assert flat.facts["complete"] is False


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_is_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(listed(A).decode().encode(encoding))
    with pytest.raises(NotATraceError) as caught:
        flattened(tmp_path / "t.json", tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [b"", b" \n", b"hello", b'"text"', b"5", b"[1, 2]", b'{"a": 1}', b"{}", b'{"a": x}']
    + [b'{"traceEvents": {}}', b'{"traceEvents": [', b'[{"ph": "', b'{"traceEvents": [{"ph": "X'],
)
def test_nothing_to_keep_is_refused(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(raw)
    with pytest.raises(BadInputError) as caught:
        flattened(tmp_path / "t.json", tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_damage_far_into_a_long_file_is_placed_exactly(tmp_path: Path) -> None:
    events = [f'{{"ph": "X", "name": "é", "args": {{"i": {i}}}}}' for i in range(60_000)]
    events[40_000] = events[40_000].replace('"é"', '"a"b"')
    raw = ('{"traceEvents": [' + ",\n".join(events) + "]}").encode()
    (tmp_path / "t.json").write_bytes(raw)
    flat = flattened(tmp_path / "t.json", tmp_path / "out")
    (loss,) = flat.losses
    assert loss["byte_offset"] == raw.index(b'"a"b"') - len('{"ph": "X", "name": ')
    assert (loss["line"], loss["event_id"]) == (40_001, 40_000)
    numbers = [json.loads(row["args"])["i"] for row in flat.events]
    assert numbers == [i for i in range(60_000) if i != 40_000]


@pytest.mark.parametrize(
    "rest",
    [
        b'{"ph":"X","name":"a"b"}' + b" " * 300_000 + b',"x":1',
        b" " * 300_000 + b"x",
        b'"' * 100_001,
        b"{" * 100_000,
        b'{"ph":' * 20_000,
        b'[{"' * 50_000,
        b"\x00" * 300_000,
        b'{"ph":"X","name":"' + b"\\" * 100_001,
    ],
    ids=["blanks inside", "blanks", "quotes", "braces", "events", "lists", "zeros", "backslashes"],
)
@pytest.mark.parametrize("place", ["list", "metadata"])
def test_long_nonsense_takes_no_long_time(rest: bytes, place: str, tmp_path: Path) -> None:
    """A minute is over soon where the time grows with the square of the length."""
    begin = b'{"traceEvents":[%s,' % A if place == "list" else b'{"traceEvents":[%s],"a":' % A
    (tmp_path / "t.json").write_bytes(begin + rest)
    flat = flattened(tmp_path / "t.json", tmp_path / "out")
    assert flat.events[0]["name"] == "a" and len(flat.events) <= 2
    assert flat.facts["complete"] is False
