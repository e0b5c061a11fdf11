"""Flattening, compared with an independent reading of the same bytes by json.loads."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from flattened import both, check_at_once, cut_small, expected, rebuilt, write

from trace_sql import flatten as flattening
from trace_sql.errors import BadInputError, TraceSqlError
from trace_sql.events import EVENT_COLUMNS, FACT_COLUMNS
from trace_sql.flatten import flatten

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
GOOD = '{"ph": "X", "name": "é"}'


@pytest.mark.skipif(not TRACES, reason="needs the real traces in ../shared/traces")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_real_trace_is_rebuilt_exactly(path: Path, tmp_path: Path) -> None:
    rows, facts = both(path, tmp_path / "out")
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
    small = both(path, tmp_path / "small")
    # Either the file itself has more bytes, or only what is in it.
    assert (path.stat().st_size > limit) == (limit == 0)
    monkeypatch.setattr(flattening, "_SMALL", limit)
    large = both(path, tmp_path / "large")
    assert large[0] == small[0]
    assert large[1].pop("ingested_at") >= small[1].pop("ingested_at")
    assert large[1] == small[1]


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the odd inputs in ../shared/cases")
@pytest.mark.parametrize("number", ["07", "09", "10", "11", "22", "23", "30", "32", "34"])
def test_odd_input_loses_nothing(number: str, tmp_path: Path) -> None:
    (path,) = CASES.glob(f"{number}_*")
    rows, facts = both(path, tmp_path / "out")
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    assert [rebuilt(row) for row in rows] == expected(raw)
    device = [row for row in rows if row["cat"] in ("kernel", "Kernel", "gpu_memcpy", "Memcpy")]
    assert facts["n_device_events"] == len(device)
    assert all(row["device"] is not None and row["correlation"] is not None for row in device)


def test_columns_are_the_schema(tmp_path: Path) -> None:
    both(write(tmp_path / "t.json", '{"ph": "X"}'), tmp_path / "out")
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
    rows, _ = both(write(tmp_path / "t.json", events), tmp_path / "out")
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
    ("7.0", 7),
    ("1e3", 1000),
    ("9007199254740993", 2**53 + 1),
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
    rows, _ = both(write(tmp_path / "t.json", ", ".join(events)), tmp_path / "out")
    for row, old, (value, held) in zip(rows[::2], rows[1::2], IDS, strict=True):
        assert {column: row[column] for column in ID_ARGS} == dict.fromkeys(ID_ARGS, held), value
        assert json.loads(row["args"]) == dict.fromkeys(ID_ARGS.values(), json.loads(value))
        assert old["external_id"] == held, value


def test_every_element_is_one_row(tmp_path: Path) -> None:
    events = '{}, 5, "x", null, [1, {"a": 2}], true, {"ph": "X", "new": {"k": null}}, {"args": []}'
    rows, facts = both(write(tmp_path / "t.json", events), tmp_path / "out")
    extras = [row["extra"] and json.loads(row["extra"]) for row in rows]
    assert extras == [None, 5, "x", None, [1, {"a": 2}], True, {"new": {"k": None}}, None]
    assert rows[3]["extra"] == "null"
    assert (rows[7]["args"], facts["n_events"]) == ("[]", 8)


@pytest.mark.parametrize("piece", [64, 1 << 19])
def test_checked_reading_agrees_with_the_quick_one(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(1)
    events = [
        {"ph": "X", "name": "é€😀" * source.randrange(9), "ts": i / 8, "s": ["t", None], "id": i}
        for i in range(200)
    ]
    path = write(
        tmp_path / "t.json", json.dumps(events, ensure_ascii=False)[1:-1], tail=', "a": 1}'
    )
    cut_small(monkeypatch, piece, 50)
    quick = both(path, tmp_path / "quick")
    check_at_once(monkeypatch)
    checked = both(path, tmp_path / "checked")
    assert quick[0] == checked[0]
    assert list(map(rebuilt, quick[0])) == expected(path.read_bytes())
    assert {**quick[1], "ingested_at": 0} == {**checked[1], "ingested_at": 0}


@pytest.mark.parametrize("value", ['{"a": null}', '[{"b": null}, 1.5]', '"t"', "1", "false"])
def test_other_keys_are_kept_whole(value: str, tmp_path: Path) -> None:
    rows, _ = both(write(tmp_path / "t.json", f'{{"ph": "i", "s": {value}}}'), tmp_path / "out")
    assert json.loads(rows[0]["extra"]) == {"s": json.loads(value)}


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        flatten(tmp_path / "no.json", tmp_path, trace_id="0", name="n")
    with pytest.raises(BadInputError, match="a folder"):
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
