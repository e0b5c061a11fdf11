"""Files as the field sends them: every whole event is kept, and every loss has its place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, answer, command, refused
from flattened import Flat, check_at_once, cut_small, flattened, flattened_all

from trace_sql import event_list, json_value
from trace_sql.errors import BadInputError, ExitCode, NotATraceError, TraceSqlError

CASES = Path(__file__).resolve().parents[1] / ".." / "shared" / "cases"

A = b'{"ph":"X","name":"a"}'
B = b'{"ph":"X","name":"b"}'
Read = Callable[[bytes], list[Flat]]


@pytest.fixture(params=["one piece", "small pieces"])
def read(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Flatten all documents of a text, whole at once or with seams everywhere."""
    if request.param == "small pieces":
        cut_small(monkeypatch, 30, 20)

    def read_text(raw: bytes) -> list[Flat]:
        (tmp_path / "t.json").write_bytes(raw)
        return flattened_all(tmp_path / "t.json", tmp_path / "out")

    return read_text


def names(flat: Flat) -> list[Any]:
    return [event.get("name") for event in flat.rebuilt]


def listed(*events: bytes) -> bytes:
    return b'{"schemaVersion": 1, "traceEvents": [%s]}' % b",\n ".join(events)


# The shared cases, as a user sees them.


def ingest_case(run: Run, number: str) -> tuple[Path, list[dict[str, Any]]]:
    if not CASES.is_dir():
        pytest.skip("needs the odd inputs in ../shared/cases")
    (path,) = CASES.glob(f"{number}_*")
    return path, answer(run("ingest", path, "--format", "json"))


def ask(run: Run, trace: str, sql: str) -> list[dict[str, Any]]:
    return list(answer(run("sql", trace, sql, "--format", "json")))


LOSSES = "select * exclude (trace_id, loss_no, detail) from losses order by loss_no"
GOOD_BODY = [(140_000, 10_000), (190_000, 20_000), (240_000, 30_000)]
"""Starts and durations of its kernels; they do not overlap, so busy is 60 us."""


def kernels(run: Run, trace: str) -> list[tuple[int, int]]:
    sql = "select start_ns, dur_ns from activities where kind = 'kernel' order by start_ns"
    return [(row["start_ns"], row["dur_ns"]) for row in ask(run, trace, sql)]


@pytest.mark.parametrize(
    ("number", "complete", "n_events", "losses"),
    [
        ("01", False, 24, [("unreadable", False, 20, 4232, 294)]),
        (
            "02",
            True,
            26,
            [("control_character", True, 20, 4232, 294), ("bad_utf8", True, 21, 4382, 303)],
        ),
        ("05", False, 20, [("truncated", False, 20, 4232, 294)]),
        ("07", True, 23, []),
    ],
)
def test_case_with_the_good_body(
    number: str, complete: bool, n_events: int, losses: list[Any], run: Run, tmp_path: Path
) -> None:
    path, (row,) = ingest_case(run, number)
    trace = row["trace_id"]
    assert kernels(run, trace) == GOOD_BODY
    found = ask(run, trace, LOSSES)
    keys = ("kind", "repaired", "event_id", "byte_offset", "line")
    assert [tuple(loss[key] for key in keys) for loss in found] == losses
    (facts,) = ask(run, trace, "select complete, n_events, n_lost, n_repaired from traces")
    lost = sum(not loss["repaired"] for loss in found)
    assert list(facts.values()) == [complete, n_events, lost, len(found) - lost]
    text = path.read_bytes() if path.suffix == ".json" else b""
    for loss in found:
        assert text[loss["byte_offset"] - 1 :].split(b"\n", 1)[0].strip() in (b"{", b"")
        assert text.count(b"\n", 0, loss["byte_offset"]) + 1 == loss["line"]
    strict = command(tmp_path / "empty", "ingest", path, "--strict")
    assert strict.exit_code == (ExitCode.LOSSY if losses else ExitCode.OK)
    if losses:
        refused(
            strict, ExitCode.LOSSY, losses[0][0], f"byte {losses[0][3]}", f"line {losses[0][4]}"
        )
        assert not list((tmp_path / "empty").rglob("*.parquet"))
        # What is stored already is refused as well, by file and by name.
        for word in (path, trace):
            refused(run("categories", word, "--strict"), ExitCode.LOSSY, losses[0][0])


def test_case_of_bare_words(run: Run) -> None:
    _, (row,) = ingest_case(run, "04")
    copies = ask(
        run,
        row["trace_id"],
        "select e.args from activities a join events e using (trace_id, event_id)"
        " where a.kind = 'copy' order by event_id",
    )
    bandwidths = [json.loads(copy["args"])["memory bandwidth (GB/s)"] for copy in copies]
    assert [*bandwidths[:3], bandwidths[3]] == [None, None, None, "N/A"]
    assert sum(dur for _, dur in kernels(run, row["trace_id"])) == 60_000


def test_case_of_a_cut_gzip_stream(run: Run, tmp_path: Path) -> None:
    path, (row,) = ingest_case(run, "05b")
    trace = row["trace_id"]
    assert kernels(run, trace)[:3] == GOOD_BODY
    (loss,) = ask(run, trace, "from losses")
    assert (loss["kind"], loss["repaired"]) == ("truncated", False)
    assert "gzip stream ends early" in loss["detail"]
    (facts,) = ask(run, trace, "select complete, raw_bytes from traces")
    assert facts == {"complete": False, "raw_bytes": loss["byte_offset"] + loss["n_bytes"]}
    refused(command(tmp_path, "ingest", path, "--strict"), ExitCode.LOSSY, "truncated")


def test_case_of_two_documents(run: Run) -> None:
    _, rows = ingest_case(run, "06")
    assert [row["rank"] for row in rows] == [0, 1]
    for row in rows:
        assert len(kernels(run, row["trace_id"])) == 3


def test_case_of_metadata_behind_the_events(run: Run) -> None:
    _, (row,) = ingest_case(run, "09")
    (facts,) = ask(
        run,
        row["trace_id"],
        "select rank, world_size, base_time_ns, warnings, metadata from traces",
    )
    assert [facts[key] for key in ("rank", "world_size")] == [3, 8]
    assert facts["base_time_ns"] == 1_700_000_000_000_000_000
    assert json.loads(facts["warnings"]) == ["WARN toy line 1", "event_id: 64"]
    assert len(json.loads(facts["metadata"])["distributedInfo"]["pg_config"]) == 1


# Kinds of damage inside one event.

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


U = "\N{REPLACEMENT CHARACTER}"
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


# Sizes, depth, encodings.


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
