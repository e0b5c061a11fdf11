"""Damage inside one event: it is mended or lost alone, and every place of it is told."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from flattened import A, B, Read, U, listed, names

LOST = [
    b'{"ph":"X","name":"{"device": "toy"}(12): run","ts":1}',
    b'{"ph":"X","name":"f"{"x": [1, {"y": 2}]}"\n g","ts":1}',
    b'{"ph":"X","name":"a"b","ts":1}',
    b'{"ph":"X","name":""quoted"","ts":1}',
    b'{"ph":"X","name":"<lambda at "x.py">: {}},{"}',
    b'{"ph":"X","name":"open',
    b'{"ph":"X","args":{"list":[{"a":1},{"b":2}]},"name":"x"y"}',
    b'{"ph":"X","name" "no colon"}',
    b'{"ph":"X","name":}',
    b'{"ph":"X" "name":"no comma"}',
    b'{"ph":"X","args":{"a":[1,2}}',
    b'{"ph":"X","args":{"a":1}',
    b"garbage",
    b"\x00\x00\x00\x00",
    b"{{}",
]


@pytest.mark.parametrize("damaged", LOST)
def test_unreadable_event_is_lost_alone(damaged: bytes, read: Read) -> None:
    raw = listed(A, damaged, B, A)
    (flat,) = read(raw)
    assert names(flat) == ["a", "b", "a"]
    (loss,) = flat.losses
    assert (loss["kind"], loss["repaired"], loss["event_id"]) == ("unreadable", False, 1)
    begin = raw.index(damaged)
    assert loss["byte_offset"] == begin
    assert len(damaged) <= loss["n_bytes"] <= raw.index(B) - begin
    assert loss["line"] == raw.count(b"\n", 0, begin) + 1
    assert flat.facts["complete"] is False


@pytest.mark.parametrize("damaged", LOST)
def test_unreadable_last_event(damaged: bytes, read: Read) -> None:
    (flat,) = read(listed(A, B, damaged))
    assert names(flat) == ["a", "b"]
    assert [loss["repaired"] for loss in flat.losses] == [False]


def test_many_unreadable_events(read: Read) -> None:
    events = [A, *LOST[:5], B] * 20
    (flat,) = read(listed(*events))
    assert names(flat) == ["a", "b"] * 20
    assert len(events) == len(flat.events) + len(flat.losses)


REPAIRED = [
    *((f"a{chr(code)}b".encode(), f"a{chr(code)}b", "control_character") for code in range(32)),
    (b"\xf0\xc3(", f"{U}{U}(", "bad_utf8"),
    (b"\x80", U, "bad_utf8"),
    (b"\xff\xfe", U * 2, "bad_utf8"),
    (b"\xc0\xaf", U * 2, "bad_utf8"),
    (b"\xe0\x80\xaf", U * 3, "bad_utf8"),
    (b"\xed\xa0\x80\xed\xb0\x80", U * 6, "bad_utf8"),
    (b"\xf4\x90\x80\x80", U * 4, "bad_utf8"),
    (b"\xe2\x82", U, "bad_utf8"),
    (b"\xf0\x9f\x98", U, "bad_utf8"),
    (b"caf\xe9", f"caf{U}", "bad_utf8"),
    (rb"toypkg\cuda\init.py(9): go", r"toypkg\cuda\init.py(9): go", "lone_backslash"),
    (rb"C:\new\table\xyz", r"C:\new\table\xyz", "lone_backslash"),
    (rb"C:\users\u12", r"C:\users\u12", "lone_backslash"),
    (rb"\uzzzz", r"\uzzzz", "lone_backslash"),
    (rb"a\'b", r"a\'b", "lone_backslash"),
    (rb"\ud800", U, "lone_surrogate"),
    (rb"\udc00\ud800x", f"{U}{U}x", "lone_surrogate"),
    (rb"\ud83d\ude00\ud83d", f"😀{U}", "lone_surrogate"),
]


@pytest.mark.parametrize(("inside", "text", "kind"), REPAIRED)
def test_text_is_repaired(inside: bytes, text: str, kind: str, read: Read) -> None:
    damaged = b'{"ph":"X","name":"%s","pid":"%s","args":{"%s":["%s"]}}' % ((inside,) * 4)
    raw = listed(A, damaged, B)
    (flat,) = read(raw)
    assert names(flat) == ["a", text, "b"]
    assert flat.rebuilt[1] == {"ph": "X", "name": text, "pid": text, "args": {text: [text]}}
    (loss,) = flat.losses
    assert (loss["kind"], loss["repaired"], loss["event_id"]) == (kind, True, 1)
    assert (loss["byte_offset"], loss["n_bytes"]) == (raw.index(damaged), len(damaged))
    assert flat.facts["complete"] is True


def test_backslash_before_the_closing_quote(read: Read) -> None:
    (flat,) = read(listed(A, b'{"ph":"X","name":"C:\\dir\\","ts":1}', B))
    assert names(flat) == ["a", "b"]
    assert flat.kinds == ["unreadable"]


@pytest.mark.parametrize(
    "word",
    ["inf", "-inf", "Inf", "+inf", "Infinity", "-Infinity", "nan", "NaN", "-nan", "NAN", "N/A"]
    + [
        "n/a",
        "None",
        "undefined",
        "1.#IND",
        "-1.#INF",
        "0x10",
        "1e",
        ".5",
        "05",
        "+1",
        "--1",
        "<null>",
        "NULL",
    ],
)
def test_bare_word_becomes_null(word: str, read: Read) -> None:
    number = b'{"ph":"X","dur":%s,"name":"x","args":{"a":%s,"b":[%s,1],"c":"kept"}}'
    (flat,) = read(listed(A, number % ((word.encode(),) * 3), B))
    assert flat.rebuilt[1] == {
        "ph": "X",
        "name": "x",
        "args": {"a": None, "b": [None, 1], "c": "kept"},
    }
    assert (flat.kinds, flat.facts["n_repaired"]) == (["bare_constant"], 1)


@pytest.mark.parametrize("key", ["ph", "name", "cat", "pid", "tid", "id", "ts", "dur", "args", "s"])
@pytest.mark.parametrize("word", ["nan", "-inf", "NaN", "Infinity"])
def test_word_that_the_engine_reads_is_seen_anywhere(word: str, key: str, read: Read) -> None:
    event = b'{"ph":"i","x":1,"%s":%s}' if key != "ph" else b'{"x":1,"%s":%s}'
    (flat,) = read(listed(A, event.replace(b'"x":1,', b"") % (key.encode(), word.encode()), B))
    assert key not in flat.rebuilt[1] or flat.rebuilt[1][key] is None
    assert flat.kinds == ["bare_constant"]


@pytest.mark.parametrize(
    ("event", "value", "kind"),
    [
        (b'{ph:"X",name:"x"}', {"ph": "X", "name": "x"}, "unquoted_key"),
        (b'{"ph":"X",name":"x"}', {"ph": "X", "name": "x"}, "unquoted_key"),
        (b'{"ph":"X","name":"x",}', {"ph": "X", "name": "x"}, "trailing_comma"),
        (b'{"ph":"X","name":"x" , \n}', {"ph": "X", "name": "x"}, "trailing_comma"),
        (b'{"ph":"X",,"name":"x"}', {"ph": "X", "name": "x"}, "extra_comma"),
        (b'{,"ph":"X","name":"x"}', {"ph": "X", "name": "x"}, "extra_comma"),
        (b'{"ph":"X","args":{"a":[1,2,]}}', {"ph": "X", "args": {"a": [1, 2]}}, "trailing_comma"),
        (b'{"ph":"X","args":{"a":1,}}', {"ph": "X", "args": {"a": 1}}, "trailing_comma"),
        (b'{"ph":"X","ts":True}', {"ph": "X", "ts": True}, "bare_constant"),
    ],
)
def test_spelling_is_repaired(event: bytes, value: Any, kind: str, read: Read) -> None:
    (flat,) = read(listed(A, event, B))
    assert flat.rebuilt == [{"ph": "X", "name": "a"}, value, {"ph": "X", "name": "b"}]
    assert (flat.kinds, flat.facts["n_lost"]) == ([kind], 0)


@pytest.mark.parametrize(
    ("event", "value", "n"),
    [
        (b'{"ph":"X","name":"x","name":"y"}', {"ph": "X", "name": "y"}, 1),
        (b'{"ph":"X","name":"y","name":"y"}', {"ph": "X", "name": "y"}, 1),
        (b'{"ph":"X","na\\u006de":"x","name":"y"}', {"ph": "X", "name": "y"}, 1),
        (b'{"ts":1.5,"ph":"X","ts":2.25,"ts":3}', {"ph": "X", "ts": Decimal(3)}, 2),
        (b'{"ph":"X","own":{"a":1},"own":{"b":[2]}}', {"ph": "X", "own": {"b": [2]}}, 1),
        (b'{"ph":"X","args":{"a":1},"args":{}}', {"ph": "X", "args": {}}, 1),
    ],
)
def test_key_that_comes_twice_is_told(event: bytes, value: Any, n: int, read: Read) -> None:
    (flat,) = read(listed(A, event, B))
    assert flat.rebuilt[1] == value
    assert flat.kinds == ["duplicate_key"] * n
    assert all(loss["event_id"] == 1 and loss["repaired"] for loss in flat.losses)


def test_key_twice_in_args_is_kept_as_text(read: Read) -> None:
    (flat,) = read(listed(A, b'{"ph":"X","args":{"a":1,"a":2}}'))
    assert (flat.events[1]["args"], flat.losses) == ('{"a":1,"a":2}', [])
