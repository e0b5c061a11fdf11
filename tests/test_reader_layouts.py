"""Whole files of any layout: nothing of them depends on where pieces are cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from flattened import both, rebuilt, write


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
