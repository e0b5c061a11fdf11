"""What stands around events: the list, metadata, the end of the text, several documents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import answer, command, refused
from flattened import A, B, Read, U, flattened, listed, names

from trace_sql.errors import BadInputError, ExitCode, TraceSqlError

# Lists.


@pytest.mark.parametrize(
    ("raw", "kinds", "complete"),
    [
        (b"[%s,%s]", [], True),
        (b"[%s,%s,]", ["trailing_comma"], True),
        (b"[%s,,%s]", ["extra_comma"], True),
        (b"[,%s,%s]", ["extra_comma"], True),
        (b"[%s %s]", ["missing_comma"], True),
        (b"[%s\n%s\n", ["missing_comma", "unclosed_list"], True),
        (b"[%s,%s", ["unclosed_list"], True),
        (b"[\n%s,\n%s,\n", ["unclosed_list"], True),
        (b'{"traceEvents":[%s,%s,]}', ["trailing_comma"], True),
        (b'{"traceEvents":[%s,%s],}', ["trailing_comma"], True),
        (b'{"traceEvents":[%s,%s],,"a":1}', ["extra_comma"], True),
        (b'{"traceEvents":[%s,%s]"a":1}', ["missing_comma"], True),
        (b"{traceEvents:[%s,%s]}", ["unquoted_key"], True),
        (b'{"traceEvents:[%s,%s]}', ["unquoted_key"], True),
        (b'{"traceEvents":[%s,%s', ["truncated"], False),
        (b'{"traceEvents":[%s,%s,', ["truncated"], False),
        (b'{"traceEvents":[%s,%s]', ["truncated"], False),
        (b'{"traceEvents":[%s,%s}', ["truncated"], False),
        (b'{"traceEvents":[%s,%s]}]', ["foreign_text"], False),
        (b'{"traceEvents":[%s,%s]}\nTraceback (most recent)', ["foreign_text"], False),
        (b'INFO: [rank0] {x}\n{"traceEvents":[%s,%s]}', ["foreign_text"], False),
        (
            b'INFO: {"x\n{"traceEvents":[%s,%s]}',
            ["foreign_text", "unreadable_metadata", "foreign_object"],
            False,
        ),
        (b'eEvents":[%s,%s]}', ["foreign_text", "foreign_text"], False),
        (b'{"traceEvents":[%s,%s]} {"level":"info"}', ["foreign_object"], False),
    ],
)
def test_list_of_another_layout(raw: bytes, kinds: list[str], complete: bool, read: Read) -> None:
    (flat,) = read(raw % (A, B))
    assert names(flat) == ["a", "b"]
    assert (flat.kinds, flat.facts["complete"]) == (kinds, complete)


def test_elements_that_are_no_events(read: Read) -> None:
    (flat,) = read(listed(A, b"{}", b"5", b'"x"', b"null", b"[1]", b"true", B, b"{}"))
    assert flat.rebuilt[1:7] == [{}, 5, "x", None, [1], True]
    assert (len(flat.events), flat.losses) == (9, [])
    assert json.loads(flat.facts["warnings"]) == ["7 elements of traceEvents are no events"]


def whole_before(raw: bytes, end: int) -> int:
    """The number of events that stand whole before a byte."""
    return sum(raw[:end].count(event) for event in (A, B))


SMALL = b'{"a":[1],\n"traceEvents":[\n%s,\n%s],"t":"x","n":12}\n' % (A, B)


@pytest.mark.parametrize("pack", [bytes, lambda raw: gzip.compress(raw, mtime=0)])
def test_cut_at_every_byte(pack: Any, tmp_path: Path) -> None:
    data = pack(SMALL)
    last = len(SMALL.rstrip()) if data == SMALL else len(data)
    for end in range(len(data)):
        (tmp_path / "t.json").write_bytes(data[:end])
        try:
            flat = flattened(tmp_path / "t.json", tmp_path / "out")
        except TraceSqlError as error:
            assert "\n" not in str(error)
            assert data != SMALL or whole_before(SMALL, end) == 0
            continue
        cut = [] if end >= last else ["truncated"]
        if data == SMALL:
            assert len(flat.events) == whole_before(SMALL, end), end
            assert flat.kinds == cut, end
        else:
            assert len(flat.events) == whole_before(SMALL, flat.facts["raw_bytes"])
            assert flat.kinds in (cut, ["damaged_stream"]), end
        assert names(flat) == ["a", "b"][: len(flat.events)]


# Several documents.

FIRST = b'{"schemaVersion":1,"distributedInfo":{"rank":0},"traceEvents":[%s,%s]}' % (A, A)
SECOND = b'{"schemaVersion":1,"distributedInfo":{"rank":1},"traceEvents":[%s]}' % B


@pytest.mark.parametrize(
    ("raw", "ranks", "found", "kinds"),
    [
        (FIRST + SECOND, [0, 1], ["aa", "b"], [[], []]),
        (FIRST + b"\n" + SECOND + b"\n", [0, 1], ["aa", "b"], [[], []]),
        (FIRST + b"\n\xef\xbb\xbf" + SECOND, [0, 1], ["aa", "b"], [[], []]),
        (FIRST + b"," + SECOND, [0, 1], ["aa", "b"], [["foreign_text"], []]),
        (FIRST + b"\n[rank1]: W {x} [1]\n" + SECOND, [0, 1], ["aa", "b"], [["foreign_text"], []]),
        (FIRST + SECOND + FIRST, [0, 1, 0], ["aa", "b", "aa"], [[], [], []]),
        (FIRST[:-2] + SECOND, [0, 1], ["aa", "b"], [["truncated"], []]),
        (FIRST[:-1] + SECOND, [0, 1], ["aa", "b"], [["truncated"], []]),
        (FIRST[:-7] + SECOND, [0, 1], ["a", "b"], [["unreadable", "truncated"], []]),
        (FIRST + SECOND[:-2], [0, 1], ["aa", "b"], [[], ["truncated"]]),
        (FIRST + SECOND[:-7], [0, 1], ["aa", ""], [[], ["truncated"]]),
        (FIRST + SECOND[:30], [0], ["aa"], [["truncated"]]),
        (b'{"traceEvents":[%s,%s,%s]}' % (A, SECOND, A), [None, 1], ["aa", "b"], [[], []]),
        (b'{"traceEvents":[%s]}' % SECOND, [None, 1], ["", "b"], [[], []]),
        (b"[%s][%s]" % (A, B), [None, None], ["a", "b"], [[], []]),
        (b'{"traceEvents":[%s],"traceEvents":[%s]}' % (A, B), [None] * 2, ["a", "b"], [[], []]),
    ],
)
def test_several_documents(
    raw: bytes, ranks: list[Any], found: list[str], kinds: list[Any], read: Read
) -> None:
    flats = read(raw)
    assert ["".join(names(flat)) for flat in flats] == found
    assert [flat.kinds for flat in flats] == kinds
    assert [flat.facts["rank"] for flat in flats] == ranks


@pytest.mark.parametrize("size", [7, 50, 100])
def test_interleaved_writes_keep_what_is_whole(size: int, read: Read) -> None:
    one, two = listed(*[A] * 20), listed(*[B] * 20)
    raw = b"".join(one[at : at + size] + two[at : at + size] for at in range(0, len(one), size))
    try:
        flats = read(raw)
    except BadInputError:
        assert size < len(A)
        return
    kept = sum(len(flat.events) for flat in flats)
    assert kept <= 40 and any(not flat.facts["complete"] for flat in flats)
    assert size < len(A) or kept > 0


def test_documents_are_all_stored_or_none(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(FIRST + SECOND + SECOND[:-2])
    refused(command(tmp_path / "s", "ingest", path, "--strict"), ExitCode.LOSSY, "truncated")
    assert not list((tmp_path / "s").rglob("*.parquet"))
    rows = answer(command(tmp_path / "s", "ingest", path, "--format", "json"))
    assert [row["name"] for row in rows] == ["t", "t#1", "t#2"]
    assert [row["trace_id"].partition(".")[2] for row in rows] == ["", "1", "2"]
    again = answer(command(tmp_path / "s", "ingest", path, "--format", "json"))
    assert [row["state"] for row in again] == ["already stored"] * 3
    refused(command(tmp_path / "s", "ingest", path, "--strict"), ExitCode.LOSSY, "truncated")


# Metadata.


@pytest.mark.parametrize(
    ("head", "tail", "kept", "kinds"),
    [
        (b'"a":1,', b',"b":2', {"a": 1, "b": 2}, []),
        (b"", b',"WARNING":["x"y"],"traceName":"t"', {"traceName": "t"}, ["unreadable_metadata"]),
        (
            b"",
            b',"WARNING":["x"]"INFO":["y"]"rest":1',
            {"WARNING": ["x"], "INFO": ["y"], "rest": 1},
            ["missing_comma"] * 2,
        ),
        (
            b"",
            b',"WARNING":["x\ny"],"b":1',
            {"WARNING": ["x\ny"], "b": 1},
            ["control_character"],
        ),
        (
            b'"p":"toy\xff",',
            b',"b":nan',
            {"p": f"toy{U}", "b": None},
            ["bad_utf8", "bare_constant"],
        ),
        (
            b'"deviceProperties":[{"id":0,"name":"a"b"},{"id":1}],"distributedInfo":{"rank":2},',
            b"",
            {"distributedInfo": {"rank": 2}},
            ["unreadable_metadata"],
        ),
        (
            b"",
            b',"deviceProperties":[{"id":0,"name":"a"b"},{"id":1}],"distributedInfo":{"rank":2}',
            {"distributedInfo": {"rank": 2}},
            ["unreadable_metadata"],
        ),
        (b",,", b"", {}, ["extra_comma"]),
        (b'"a":1,"a":1,', b"", {"a": 1}, ["duplicate_key"]),
        (b'"a":1,"a":2,', b"", {"a": 2}, ["duplicate_key"]),
        (b'"WARNING":[1],', b',"WARNING":[2]', {"WARNING": [1, 2]}, ["duplicate_key"]),
    ],
)
def test_metadata(
    head: bytes, tail: bytes, kept: dict[str, Any], kinds: list[str], read: Read
) -> None:
    (flat,) = read(b'{%s"traceEvents":[%s,%s]%s}' % (head, A, B, tail))
    assert names(flat) == ["a", "b"]
    assert json.loads(flat.facts["metadata"]) == kept
    assert flat.kinds == kinds
