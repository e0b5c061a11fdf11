"""Flattening, compared with an independent reading of the same bytes by json.loads."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql import document
from trace_sql import flatten as flattening
from trace_sql.errors import BadInputError, TraceSqlError
from trace_sql.events import EVENT_COLUMNS, FACT_COLUMNS
from trace_sql.flatten import flatten
from trace_sql.source import Source

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"
TRACES = sorted((SHARED / "traces").rglob("*.json.gz"))
CASES = SHARED / "cases"

ID_ARGS = {
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "external_id": "External id",
    "python_id": "Python id",
    "python_parent_id": "Python parent id",
}
TEXT_KEYS = ("ph", "cat", "name", "pid", "tid", "id")


def flattened(path: Path, out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of events.parquet in order and the row of facts.parquet."""
    out.mkdir(exist_ok=True)
    flatten(path, out, trace_id="0123456789ab", name="a trace")
    order = "file_row_number = true) order by file_row_number"
    (out / "left").write_text(" ".join(sorted(p.name for p in out.iterdir() if p.name != "left")))
    assert (out / "left").read_text() == "events.parquet facts.parquet"
    with duckdb.connect() as connection:
        cursor = connection.execute(
            f"select * exclude file_row_number from read_parquet('{out}/events.parquet', {order}"
        )
        columns = [column[0] for column in cursor.description]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        cursor = connection.execute(f"from read_parquet('{out}/facts.parquet')")
        (facts,) = cursor.fetchall()
        return rows, dict(zip((c[0] for c in cursor.description), facts, strict=True))


def rebuilt(row: dict[str, Any]) -> Any:
    """Return the event a row stands for; times in us as Decimal, pid, tid and id as text."""
    event = {key: row[key] for key in TEXT_KEYS if row[key] is not None}
    for key in ("ts", "dur"):
        if row[f"{key}_ns"] is not None:
            event[key] = Decimal(row[f"{key}_ns"]) / 1000
    if row["args"] is not None:
        event["args"] = json.loads(row["args"])
    extra = json.loads(row["extra"] or "{}")
    return event | extra if isinstance(extra, dict) else extra


def expected(raw: bytes) -> list[Any]:
    """Return the events of a trace as `rebuilt` gives them; times from the digits."""
    events, exact = json.loads(raw), json.loads(raw, parse_float=Decimal)
    if isinstance(events, dict):
        events, exact = events["traceEvents"], exact["traceEvents"]
    for event, digits in zip(events, exact, strict=True):
        if not isinstance(event, dict):
            continue
        for key in ("ts", "dur"):
            if key in event:
                event[key] = Decimal(digits[key])
        for key in ("pid", "tid", "id"):
            if key in event:
                event[key] = str(event[key])
        # A key whose value is null is the same as no key.
        for key in [key for key in (*TEXT_KEYS, "ts", "dur", "args") if key in event]:
            if event[key] is None:
                del event[key]
    return list(events)


def write(path: Path, events: str, head: str = '{"schemaVersion": 1, ', tail: str = "}") -> Path:
    path.write_text(f'{head}"traceEvents": [{events}]{tail}', encoding="utf-8")
    return path


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every few events and read every few bytes, so that small files have many seams."""
    monkeypatch.setattr(document, "PIECE_BYTES", 64)
    monkeypatch.setattr(document, "CHUNK_BYTES", 50)
    monkeypatch.setattr(Source.read, "__defaults__", (50,))


@pytest.mark.skipif(not TRACES, reason="needs the real traces in ../shared/traces")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_real_trace_is_rebuilt_exactly(path: Path, tmp_path: Path) -> None:
    rows, facts = flattened(path, tmp_path / "out")
    raw = gzip.decompress(path.read_bytes())
    whole = json.loads(raw)
    events = whole.pop("traceEvents")
    assert facts["raw_bytes"] == len(raw)
    assert facts["file_bytes"] == path.stat().st_size
    assert facts["n_events"] == len(events) == len(rows)
    assert json.loads(facts["metadata"]) == whole
    device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert facts["n_device_events"] == len(device)
    assert facts["n_devices"] == len({e["args"]["device"] for e in device})
    for got, want in zip(rows, expected(raw), strict=True):
        assert rebuilt(got) == want
        args = want.get("args", {})
        for column, key in ID_ARGS.items():
            value = args.get(key)
            # The stream of some HIP calls is an address, "0x0".
            assert got[column] == (value if isinstance(value, int) else None)


@pytest.mark.skipif(not TRACES, reason="needs the real traces in ../shared/traces")
@pytest.mark.parametrize("limit", [0, 100_000], ids=["by size", "while reading"])
def test_large_file_gives_the_same(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SHARED / "traces" / "hf_bert_small_h100.json.gz"
    small = flattened(path, tmp_path / "small")
    # Either the file itself has more bytes, or only what is in it.
    assert (path.stat().st_size > limit) == (limit == 0)
    monkeypatch.setattr(flattening, "_SMALL", limit)
    large = flattened(path, tmp_path / "large")
    assert large[0] == small[0]
    assert large[1].pop("ingested_at") >= small[1].pop("ingested_at")
    assert large[1] == small[1]


@pytest.mark.skipif(not TRACES, reason="needs the real traces in ../shared/traces")
def test_facts_of_real_traces(tmp_path: Path) -> None:
    _, amd = flattened(SHARED / "traces" / "vllm_gpt_oss_20b_decode_mi300x.json.gz", tmp_path / "a")
    assert (amd["vendor"], amd["gpu"], amd["with_stack"]) == ("amd", None, True)
    _, ranks = flattened(SHARED / "traces" / "ranks" / "sampled_rank-1.json.gz", tmp_path / "b")
    assert (ranks["rank"], ranks["rank_source"], ranks["world_size"]) == (1, "header", 128)
    assert (ranks["vendor"], ranks["record_shapes"]) == ("nvidia", True)


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the odd inputs in ../shared/cases")
@pytest.mark.parametrize("number", ["07", "09", "10", "11", "22", "23", "30", "32", "34"])
def test_odd_input_loses_nothing(number: str, tmp_path: Path) -> None:
    (path,) = CASES.glob(f"{number}_*")
    rows, facts = flattened(path, tmp_path / "out")
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    assert [rebuilt(row) for row in rows] == expected(raw)
    device = [row for row in rows if row["cat"] in ("kernel", "Kernel", "gpu_memcpy", "Memcpy")]
    assert facts["n_device_events"] == len(device)
    assert all(row["device"] is not None and row["correlation"] is not None for row in device)


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the odd inputs in ../shared/cases")
def test_facts_of_odd_inputs(tmp_path: Path) -> None:
    _, after = flattened(CASES / "09_metadata_after_events.json", tmp_path / "09")
    assert (after["rank"], after["world_size"]) == (3, 8)
    assert after["base_time_ns"] == 1_700_000_000_000_000_000
    assert json.loads(after["warnings"]) == ["WARN toy line 1", "event_id: 64"]
    rows, _ = flattened(CASES / "10_ts_as_strings_epoch_ns.json", tmp_path / "10")
    kernels = [(row["ts_ns"], row["dur_ns"]) for row in rows if row["cat"] == "kernel"]
    assert kernels == [
        (1767225600123456100, 300),
        (1767225600123456500, 300),
        (1767225600123456900, 2000),
    ]
    _, lost = flattened(CASES / "11_zero_ts_kernels.json", tmp_path / "11")
    assert (lost["n_device_events"], lost["n_without_time"]) == (7, 4)
    assert json.loads(lost["warnings"]) == ["4 device events have no time"]
    _, empty = flattened(CASES / "22_metadata_only.json", tmp_path / "22")
    assert (empty["n_device_events"], empty["min_ts_ns"], empty["max_end_ns"]) == (0, None, None)
    assert empty["vendor"] == "unknown"
    rows, old = flattened(CASES / "23_old_category_spelling.json", tmp_path / "23")
    assert (old["n_device_events"], old["max_end_ns"]) == (2, 290_000)
    assert [row["external_id"] for row in rows if row["cat"] == "Kernel"] == [9]
    _, two = flattened(CASES / "32_host_pid_equals_device_id.json", tmp_path / "32")
    assert (two["n_device_events"], two["n_devices"]) == (5, 2)


def test_columns_are_the_schema(tmp_path: Path) -> None:
    flattened(write(tmp_path / "t.json", '{"ph": "X"}'), tmp_path / "out")
    for file, columns in (("events", EVENT_COLUMNS), ("facts", FACT_COLUMNS)):
        query = f"describe from '{tmp_path}/out/{file}.parquet'"
        described = duckdb.execute(query).fetchall()
        assert {row[0]: row[1] for row in described} == columns
        assert [row[0] for row in described] == list(columns)


TIMES = [
    ("5.001", 5001, False),
    ('"5.001"', 5001, False),
    ("1767225600123456.789", 1767225600123456789, False),
    ("1.7672256001234561e15", 1767225600123456100, False),
    ("12", 12000, False),
    ("-3.5", -3500, False),
    ("0", 0, False),
    ("1", 1000, False),
    ("null", None, False),
    ("1.0005", 1001, True),
    ("1767225600123456.7891", 1767225600123456789, True),
    ("123.45678901234568", 123457, True),
    ("1e30", None, True),
    ("99999999999999999", None, True),
    ('"soon"', None, True),
    ("true", 1000, True),
    ('{"a": 1}', None, True),
]


@pytest.mark.parametrize("key", ["ts", "dur"])
def test_time_is_exact_or_kept_in_extra(key: str, tmp_path: Path) -> None:
    events = ", ".join(f'{{"ph": "X", "{key}": {digits}, "s": "t"}}' for digits, _, _ in TIMES)
    rows, _ = flattened(write(tmp_path / "t.json", events), tmp_path / "out")
    for row, (digits, nanoseconds, kept) in zip(rows, TIMES, strict=True):
        assert row[f"{key}_ns"] == nanoseconds, digits
        extra = json.loads(row["extra"], parse_float=Decimal, parse_int=Decimal)
        assert extra.pop("s") == "t"
        original = json.loads(digits, parse_float=Decimal, parse_int=Decimal)
        assert extra == ({key: original} if kept else {}), digits


IDS = [
    ("7", 7),
    ('"7"', 7),
    ("-1", -1),
    ("9223372036854775807", 2**63 - 1),
    ("9223372036854775808", None),
    ("1.5", None),
    ('"1.5"', None),
    ("true", None),
    ("null", None),
    ("[7]", None),
    ('"stream 7"', None),
]


def test_id_argument_is_never_rounded(tmp_path: Path) -> None:
    events = []
    for value, _ in IDS:
        args = ", ".join(f'"{key}": {value}' for key in ID_ARGS.values())
        events += [f'{{"args": {{{args}}}}}', f'{{"args": {{"external id": {value}}}}}']
    rows, _ = flattened(write(tmp_path / "t.json", ", ".join(events)), tmp_path / "out")
    for row, old, (value, held) in zip(rows[::2], rows[1::2], IDS, strict=True):
        assert {column: row[column] for column in ID_ARGS} == dict.fromkeys(ID_ARGS, held), value
        assert json.loads(row["args"]) == dict.fromkeys(ID_ARGS.values(), json.loads(value))
        assert old["external_id"] == held, value


def test_every_element_is_one_row(tmp_path: Path) -> None:
    events = '{}, 5, "x", null, [1, {"a": 2}], true, {"ph": "X", "new": {"k": null}}, {"args": []}'
    rows, facts = flattened(write(tmp_path / "t.json", events), tmp_path / "out")
    extras = [row["extra"] and json.loads(row["extra"]) for row in rows]
    assert extras == [None, 5, "x", None, [1, {"a": 2}], True, {"new": {"k": None}}, None]
    assert rows[3]["extra"] == "null"
    assert (rows[7]["args"], facts["n_events"]) == ("[]", 8)


@pytest.mark.parametrize("events", ["", " \n ", "1, 2", '[], ["}]"]', '{"a": "}]"}, {"b": [{}]}'])
@pytest.mark.parametrize("tail", ["}", ', "traceEnd": [{}, {}], "x": "]"}\n', ', "a": {"b": 1}}'])
def test_end_of_the_list_is_found(events: str, tail: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", events, tail=tail)
    rows, facts = flattened(path, tmp_path / "out")
    whole = json.loads(path.read_text())
    assert [rebuilt(row) for row in rows] == whole.pop("traceEvents")
    assert json.loads(facts["metadata"]) == whole


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=8)
    # The characters that the cut looks for, in places where they mean nothing.
    | st.sampled_from(["},{", "} , {", "}]", '"', '\\"},{"', "]}", '"traceEvents": [', "\\"])
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "ph": st.sampled_from("XMBE"),
            "name": st.text(max_size=5) | st.sampled_from(["},{", "}]", 'a"},{"b']),
            "ts": st.decimals(0, 10**15, places=3).map(float),
            "pid": st.integers(0, 9),
            "args": st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4),
            "other": JSON_VALUES,
        },
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(
    events=EVENTS,
    metadata=st.dictionaries(st.text(max_size=4), JSON_VALUES),
    indent=st.sampled_from([None, 1]),
    first=st.booleans(),
)
def test_any_document_survives_small_pieces(
    events: list[Any],
    metadata: dict[str, Any],
    indent: int | None,
    first: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    metadata.pop("traceEvents", None)
    both = {"traceEvents": events}
    whole = both | metadata if first else metadata | both
    raw = json.dumps(whole, indent=indent, ensure_ascii=first)
    (folder / "t.json").write_text(raw, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "PIECE_BYTES", 20)
        patch.setattr(document, "CHUNK_BYTES", 30)
        patch.setattr(Source.read, "__defaults__", (30,))
        rows, facts = flattened(folder / "t.json", folder / "out")
    assert [rebuilt(row) for row in rows] == expected(raw.encode())
    assert json.loads(facts["metadata"]) == metadata


@pytest.mark.usefixtures("small_pieces")
def test_exact_reading_agrees_with_the_quick_one(tmp_path: Path) -> None:
    source = random.Random(1)
    events = [{"ph": "X", "name": "é€😀" * source.randrange(9), "n": [i]} for i in range(200)]
    path = write(tmp_path / "t.json", json.dumps(events, ensure_ascii=False)[1:-1])
    readings = []
    for exact in (False, True):
        opened = Source(path)
        reader = document.Document(opened)
        pieces = list(reader.pieces(exact=exact))
        assert len(pieces) > 50
        assert [event for piece in pieces for event in json.loads(b"[" + piece + b"]")] == events
        readings.append((reader.metadata(), opened.raw_bytes, opened.content_hash))
        opened.close()
    assert readings[0] == readings[1]


@pytest.mark.parametrize("write_bytes", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_kind_is_told_by_the_first_bytes(write_bytes: Any, tmp_path: Path) -> None:
    raw = b'\n [{"ph": "X", "ts": 1}, {"ph": "M"}]\n'
    (tmp_path / "t.txt").write_bytes(write_bytes(raw))
    rows, facts = flattened(tmp_path / "t.txt", tmp_path / "out")
    assert [row["ph"] for row in rows] == ["X", "M"]
    assert (facts["metadata"], facts["raw_bytes"]) == ("{}", len(raw))


def test_many_gzip_members_and_byte_order_mark(tmp_path: Path) -> None:
    raw = b'\xef\xbb\xbf{"traceEvents": [{"ph": "X"}, {"name": "\xc3\xa9"}], "a": 1}'
    members = b"".join(gzip.compress(raw[at : at + 7]) for at in range(0, len(raw), 7))
    (tmp_path / "t.json.gz").write_bytes(members)
    rows, facts = flattened(tmp_path / "t.json.gz", tmp_path / "out")
    assert [row["name"] for row in rows] == [None, "é"]
    assert facts["metadata"] == '{"a": 1}'


def test_nested_key_of_the_same_name_is_metadata(tmp_path: Path) -> None:
    head = '{"meta": {"traceEvents": [{"ph": "no"}]}, "k\\"traceEvents": [1], '
    rows, facts = flattened(write(tmp_path / "t.json", '{"ph": "X"}', head), tmp_path / "out")
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
    rows, facts = flattened(path, tmp_path / "out")
    assert [row["ph"] for row in rows] == ["M", None, "X"]
    assert rows[1]["name"] == big
    assert json.loads(facts["metadata"])["late"] == big


GOOD = '{"ph": "X", "name": "é"}'


@pytest.mark.parametrize(
    ("raw", "offset", "event", "what"),
    [
        (b"", 0, None, "empty"),
        (b" \n", 0, None, "empty"),
        (b"hello", 0, None, "starts no JSON"),
        (b'"text"', 0, None, "starts no JSON"),
        (b'{"a": 1}', 8, None, "no list traceEvents"),
        (b'{"a": 1, }', 9, None, "not a JSON trace"),
        (b'{"traceEvents": {}}', 19, None, "no list traceEvents"),
        (b'{"a": x, "traceEvents": []}', 6, None, "metadata is not JSON"),
        (b'{"a": "\xff", "traceEvents": []}', 7, None, "not UTF-8"),
        (b'{"traceEvents": [{"ph": "X"}', 28, 0, "file ends inside"),
        (b'{"traceEvents": [{"ph": "X"}, {"ph": "', 38, 1, "file ends inside"),
        (b'{"traceEvents": [', 17, 0, "file ends inside"),
        (b'{"traceEvents": [{"ph": "X"}]', 29, None, "file ends inside its metadata"),
        (b'{"traceEvents": [{"ph": "X"}], "a": "b', 36, None, "metadata|not JSON"),
        (b'{"traceEvents": [{"ph": "X"}], "a": \xff}', 36, None, "not UTF-8"),
        (b'{"traceEvents": [{"ph": "X"}]} {"traceEvents": []}', 31, None, "more follows"),
        (b'{"traceEvents": []}x', 19, None, "more follows"),
        (b'{"traceEvents": [], "traceEvents": [{}]}', 40, None, "second traceEvents"),
        (b"[{}] []", 5, None, "more follows"),
        (b'{"traceEvents": [{"a": 1}, {"a": tru}]}', 33, 1, "not JSON"),
        (b'{"traceEvents": [{"a": 1} {"b": 2}]}', 26, 1, "where a comma"),
        (b'{"traceEvents": [{"a": 1}}', 25, 1, "where a comma"),
        (b'{"traceEvents": [{"a": "\xc3\xa9"}, {"a": "\xf0\xc3"}]}', 37, 1, "not UTF-8"),
        (b'{"traceEvents": [{"a": "\xc3\xa9"}, {"a": "\x01"}]}', 37, 1, "control character"),
        (b'{"traceEvents": [{"a": "\\ud800"}]}', 24, 0, "surrogate"),
        (b'{"traceEvents": [{}, ' + b'{"a":' * 9000 + b"1" + b"}" * 8999 + b"]}", 21, 1, "deep"),
    ],
)
def test_bad_file_is_refused_with_its_place(
    raw: bytes, offset: int, event: int | None, what: str, tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_bytes(raw)
    with pytest.raises(BadInputError, match=what) as caught:
        flattened(tmp_path / "t.json", tmp_path / "out")
    place = f"{tmp_path / 't.json'}: byte {offset}" + ("" if event is None else f", event {event}")
    assert str(caught.value).startswith(f"{place}: ")
    assert "\n" not in str(caught.value)


def test_fault_far_into_a_long_file_is_placed_exactly(tmp_path: Path) -> None:
    events = [f'{{"ph": "X", "name": "é", "args": {{"i": {i}}}}}' for i in range(60_000)]
    events[40_000] = events[40_000].replace('"é"', '"a"b"')
    path = write(tmp_path / "t.json", ",\n".join(events))
    offset = path.read_bytes().index(b'"a"b"') + 3
    with pytest.raises(BadInputError, match=f"byte {offset}, event 40000: "):
        flattened(path, tmp_path / "out")


@pytest.mark.parametrize("kept", [0.2, 0.6, 0.999])
def test_cut_gzip_is_refused(kept: float, tmp_path: Path) -> None:
    events = ",".join(f'{{"ph": "X", "ts": {random.random()}}}' for _ in range(3000))
    data = gzip.compress(f'{{"traceEvents": [{events}]}}'.encode())
    (tmp_path / "t.json.gz").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(BadInputError, match=r"t\.json\.gz: byte \d+: the gzip stream ends early"):
        flattened(tmp_path / "t.json.gz", tmp_path / "out")


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b'{"traceEvents": [{"ph": "X"}]}'))
    data[-6] ^= 1
    (tmp_path / "t.json.gz").write_bytes(data)
    with pytest.raises(BadInputError, match="decompressed"):
        flattened(tmp_path / "t.json.gz", tmp_path / "out")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        flatten(tmp_path / "no.json", tmp_path, trace_id="0", name="n")
    with pytest.raises(BadInputError, match="directory"):
        flatten(tmp_path, tmp_path, trace_id="0", name="n")


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", GOOD)
    with pytest.raises(TraceSqlError, match="cannot be written") as caught:
        flatten(path, tmp_path / "missing", trace_id="0", name="n")
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, BadInputError)


def test_quotes_in_paths(tmp_path: Path) -> None:
    folder = tmp_path / "it's"
    folder.mkdir()
    path = write(folder / "a'b.json", GOOD)
    flatten(path, folder, trace_id="0", name="it's")
    query = "select name, path from read_parquet(?)"
    (row,) = duckdb.execute(query, [str(folder / "facts.parquet")]).fetchall()
    assert row == ("it's", str(path))


@pytest.mark.parametrize(
    ("file_name", "metadata", "rank", "source"),
    [
        ("a-rank9.json", {"distributedInfo": {"rank": 3, "world_size": 8}}, 3, "header"),
        ("a-rank9.json", {"distributedInfo": {"rank": "3"}}, 3, "header"),
        ("a-rank9.json", {"distributedInfo": []}, 9, "name"),
        ("1700000000.1-TP-10-EP-2-DECODE.trace.json.gz", {}, 10, "name"),
        ("1700000000.1-TP-3.trace.json.gz", {}, 3, "name"),
        ("1700000000.1-TP-1-DP-2-PP-0.trace.json.gz", {}, 1, "name"),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.17000.pt.trace.json.gz", {}, 1, "name"),
        ("rank0_trace.json", {}, 0, "name"),
        ("sampled_rank-12.json.gz", {}, 12, "name"),
        ("rank1_of_rank2.json", {}, None, "unknown"),
        ("frank1.json", {}, None, "unknown"),
        ("merged-1700000000.1.trace.json.gz", {}, None, "unknown"),
        ("host_321.async_llm.1700.pt.trace.json.gz", {}, None, "unknown"),
    ],
)
def test_rank(
    file_name: str, metadata: dict[str, Any], rank: int | None, source: str, tmp_path: Path
) -> None:
    raw = json.dumps(metadata | {"traceEvents": []}).encode()
    (tmp_path / file_name).write_bytes(raw)
    _, facts = flattened(tmp_path / file_name, tmp_path / "out")
    assert (facts["rank"], facts["rank_source"]) == (rank, source)


@pytest.mark.parametrize(
    ("metadata", "runtime", "vendor"),
    [
        ({}, None, "unknown"),
        ({}, "cudaLaunchKernel", "nvidia"),
        ({}, "cuLaunchKernelEx", "nvidia"),
        ({}, "cursor", "unknown"),
        ({}, "hipLaunchKernel", "amd"),
        ({"roctracer_version": 4.1}, None, "amd"),
        ({"cupti_version": 24}, None, "nvidia"),
        ({"deviceProperties": [{"name": "AMD Instinct MI300X"}]}, "cudaLaunchKernel", "amd"),
        ({"deviceProperties": [{"name": "", "warpSize": 64}]}, None, "amd"),
        ({"deviceProperties": [{"name": "NVIDIA H800", "warpSize": 32}]}, None, "nvidia"),
        ({"deviceProperties": [{"name": "Toy", "warpSize": 32}]}, None, "unknown"),
        ({"deviceProperties": "none"}, None, "unknown"),
    ],
)
def test_vendor(metadata: dict[str, Any], runtime: str | None, vendor: str, tmp_path: Path) -> None:
    events = [{"cat": "cuda_runtime", "name": runtime}] if runtime else []
    (tmp_path / "t.json").write_text(json.dumps(metadata | {"traceEvents": events}))
    _, facts = flattened(tmp_path / "t.json", tmp_path / "out")
    assert facts["vendor"] == vendor


def test_facts_from_metadata(tmp_path: Path) -> None:
    metadata = {
        "deviceProperties": [{"name": "B"}, {"name": " "}, {"name": "A "}, {"name": "B"}],
        "with_stack": 1,
        "record_shapes": 0,
        "with_flops": "true",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": "1700000000000000000",
        "WARNING": "one line",
        "ERROR": ["bad", 5],
        "not a number": float("nan"),
        "half": "\ud800",
    }
    events = [
        {"ph": "M", "ts": 1},
        {"ph": "i", "ts": 2},
        {"ph": "X", "ts": 3, "dur": 4.5, "cat": "kernel", "args": {"device": 1}},
        {"ph": "X", "cat": "gpu_memset", "args": {"device": 1}},
        {"ph": "i", "ts": 100},
    ]
    (tmp_path / "t.json").write_text(json.dumps(metadata | {"traceEvents": events}))
    _, facts = flattened(tmp_path / "t.json", tmp_path / "out")
    assert facts["gpu"] == "B, A"
    flags = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
    assert [facts[flag] for flag in flags] == [True, False, None, True, None]
    assert (facts["display_time_unit"], facts["base_time_ns"]) == ("ms", 1700000000000000000)
    lines = ["one line", "bad", "5", "1 device events have no time"]
    assert json.loads(facts["warnings"]) == lines
    assert (facts["min_ts_ns"], facts["max_end_ns"], facts["n_devices"]) == (2000, 7500, 1)
    assert json.loads(facts["metadata"])["not a number"] == "NaN"
    assert (facts["trace_id"], facts["name"], facts["complete"]) == (
        "0123456789ab",
        "a trace",
        True,
    )


def test_progress_reaches_the_size_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", ",".join([GOOD] * 60_000))
    calls: list[tuple[int, int]] = []
    flatten(path, tmp_path, trace_id="0", name="n", progress=lambda *call: calls.append(call))
    size = path.stat().st_size
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1] == (size, size)


def test_error_of_the_caller_comes_through(tmp_path: Path) -> None:
    def stop(done: int, size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flatten(write(tmp_path / "t.json", GOOD), tmp_path, trace_id="0", name="n", progress=stop)
