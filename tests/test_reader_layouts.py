"""Whole files of any layout: nothing of them depends on where pieces are cut."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flattened import both, cut_small, flattened, rebuilt, write

from trace_sql import flatten
from trace_sql.source import Source
from trace_sql.text_window import TextWindow

SIZES = (1, 7, 12, 13, 30, 100, 1000)


@pytest.mark.parametrize("events", ["", " \n ", "1, 2", '[], ["}]"]', '{"a": "}]"}, {"b": [{}]}'])
@pytest.mark.parametrize("tail", ["}", ', "traceEnd": [{}, {}], "x": "]"}\n', ', "a": {"b": 1}}'])
def test_end_of_the_list_is_found(events: str, tail: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", events, tail=tail)
    rows, facts = both(path, tmp_path / "out")
    whole = json.loads(path.read_text())
    assert [rebuilt(row) for row in rows] == whole.pop("traceEvents")
    assert json.loads(facts["metadata"]) == whole


@pytest.mark.parametrize("write_bytes", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_kind_is_told_by_the_first_bytes(write_bytes: Any, tmp_path: Path) -> None:
    raw = b'\n [{"ph": "X", "ts": 1}, {"ph": "M"}]\n'
    (tmp_path / "t.txt").write_bytes(write_bytes(raw))
    rows, facts = both(tmp_path / "t.txt", tmp_path / "out")
    assert [row["ph"] for row in rows] == ["X", "M"]
    assert (facts["metadata"], facts["raw_bytes"]) == ("{}", len(raw))


def test_many_gzip_members_and_byte_order_mark(tmp_path: Path) -> None:
    raw = b'\xef\xbb\xbf{"traceEvents": [{"ph": "X"}, {"name": "\xc3\xa9"}], "a": 1}'
    members = b"".join(gzip.compress(raw[at : at + 7]) for at in range(0, len(raw), 7))
    (tmp_path / "t.json.gz").write_bytes(members)
    rows, facts = both(tmp_path / "t.json.gz", tmp_path / "out")
    assert [row["name"] for row in rows] == [None, "é"]
    assert facts["metadata"] == '{"a": 1}'


def test_nested_key_of_the_same_name_is_metadata(tmp_path: Path) -> None:
    head = '{"meta": {"traceEvents": [{"ph": "no"}]}, "k\\"traceEvents": [1], '
    rows, facts = both(write(tmp_path / "t.json", '{"ph": "X"}', head), tmp_path / "out")
    assert [row["ph"] for row in rows] == ["X"]
    assert json.loads(facts["metadata"]) == {
        "meta": {"traceEvents": [{"ph": "no"}]},
        'k"traceEvents': [1],
    }


def test_huge_event_and_huge_metadata(tmp_path: Path) -> None:
    big = "x" * (9 << 20)
    path = write(
        tmp_path / "t.json",
        f'{{"ph": "M"}}, {{"name": "{big}"}}, {{"ph": "X"}}',
        tail=f', "late": "{big}", "devices": [{{}}, {{}}]}}',
    )
    rows, facts = both(path, tmp_path / "out")
    assert [row["ph"] for row in rows] == ["M", None, "X"]
    assert rows[1]["name"] == big
    assert json.loads(facts["metadata"])["late"] == big


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("most", [20, 1 << 20])
def test_pieces_and_what_is_left_are_the_text(
    size: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ['{"a":"}, {"}', "{}", '{"long":"' + "x" * 50 + '"}', *['{"b":1}'] * 20]
    text = " ,\n ".join(events)
    (tmp_path / "t.json").write_text(text)
    cut_small(monkeypatch, size, 20)
    pieces: list[str] = []
    with closing(Source(tmp_path / "t.json")) as source:
        window = TextWindow(source)
        window.have(size)
        at = 0
        for piece in window.cut(re.compile(rb"\}\s*,\s*\{"), size, most):
            pieces.append(piece.decode())
            assert text.startswith(pieces[-1], at)
            assert re.fullmatch(r"\s*,\s*", text[at + len(piece) : window.offset])
            assert text[window.offset] == "{"
            at = window.offset
        assert window.ended or most == 20
        assert pieces or most == 20 or not 12 < size < 100
        while window.more():
            pass
        assert (window.offset, window.text[window.at :]) == (at, text[at:])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch", [1, 50, 1 << 20])
def test_stream_of_pieces_of_any_size(
    size: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ["{}", '{"ph": "X"}', '{"ph":"X1"}', '{"ph":"X12"}', '{"ph":"X123"}', '{"id":"é€😀"}']
    path = write(tmp_path / "t.json", ", ".join(events * 9))
    monkeypatch.setattr(flatten, "_SMALL", 0)
    monkeypatch.setattr(flatten, "_BATCH_BYTES", batch)
    cut_small(monkeypatch, size, 20)
    rows, _ = both(path, tmp_path / "out")
    assert [rebuilt(row) for row in rows] == json.loads(path.read_text())["traceEvents"]


def test_what_is_large_by_its_packed_size_is_not_tried_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps([{"ph": "X"}] * 5000).encode()))
    monkeypatch.setattr(flatten, "_SMALL", 3 * path.stat().st_size)
    monkeypatch.setattr(flatten, "write_pieces", lambda *_: pytest.fail("read as a small one"))
    assert len(flattened(path, tmp_path / "out").events) == 5000


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["streamed", "loaded"])
def test_bytes_that_are_no_text_are_seen(
    small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = b", ".join([b'{"ph": "X"}'] * 50 + [b'{"ph": "X", "name": "\xff"}'] * 2)
    (tmp_path / "t.json").write_bytes(b"[" + events + b"]")
    monkeypatch.setattr(flatten, "_SMALL", small)
    cut_small(monkeypatch, 100, 20)
    flat = flattened(tmp_path / "t.json", tmp_path / "out")
    assert [event.get("name") for event in flat.rebuilt[-3:]] == [None, "\ufffd", "\ufffd"]
    assert (flat.kinds, len(flat.events)) == (["bad_utf8"] * 2, 52)


@pytest.mark.parametrize("word", ["INF", "-iNf", "NAN", "nAn", "INFINITY", "-infinity"])
@pytest.mark.parametrize(
    "args", ['{"a": %s}', '{"a": [1, %s]}', "[%s]", '{"a": {"b": %s}, "c": 1}']
)
def test_word_in_any_spelling_is_no_value(word: str, args: str, tmp_path: Path) -> None:
    events = f'{{"ph": "X"}}, {{"ph": "i", "args": {args % word}}}'
    flat = flattened(write(tmp_path / "t.json", events), tmp_path / "out")
    assert json.loads(flat.events[1]["args"]) == json.loads(args % "null")
    assert flat.kinds == ["bare_constant"]
