"""Made documents, whole and damaged at random: nothing is lost unseen, nothing is made up.

`make fuzz` draws others, TRACE_SQL_FUZZ times as many.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from broken_json import Damage, Written, damages, documents
from flattened import Flat, check_at_once, cut_small, expected, flattened_all
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql.errors import NotATraceError, TraceSqlError

TIMES = int(os.environ.get("TRACE_SQL_FUZZ", "0"))
SIZES = st.sampled_from([16, 60, 300, 1 << 19])


def fuzz(examples: int) -> settings:
    """The same `examples` each time, or as many times others as the environment asks for."""
    return settings(
        max_examples=examples * max(TIMES, 1),
        derandomize=not TIMES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        # To make a failure smaller takes minutes.
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def read(raw: bytes, folder: Path, piece: int, *, checked: bool = False) -> list[Flat]:
    """Flatten all documents of `raw` with pieces of about `piece` bytes."""
    (folder / "t.json").write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch, piece, max(piece, 20))
        if checked:
            check_at_once(patch)
        return flattened_all(folder / "t.json", folder / "out")


def comparable(event: Any) -> str:
    return json.dumps(event, sort_keys=True, default=lambda time: str(time.normalize()))


@fuzz(20)
@given(written=documents(), piece=SIZES)
def test_whole_document_is_kept(written: Written, piece: int, folder: Path) -> None:
    quick = read(written.raw, folder, piece)
    checked = read(written.raw, folder, piece, checked=True)
    (one,) = quick
    assert one.rebuilt == expected(written.raw)
    assert one.losses == []
    whole = json.loads(written.raw)
    metadata = whole if isinstance(whole, dict) else {}
    metadata.pop("traceEvents", None)
    assert json.loads(one.facts["metadata"]) == metadata
    # The order of keys in `extra` is no matter.
    assert list(map(unordered, checked[0].events)) == list(map(unordered, one.events))


def unordered(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "extra": row["extra"] and json.loads(row["extra"])}


@fuzz(55)
@given(data=st.data(), written=documents(odd=False), piece=SIZES)
def test_damage_loses_nothing_else(
    data: st.DataObject, written: Written, piece: int, folder: Path
) -> None:
    damage = data.draw(damages(written.raw))
    check_damaged(written, damage, piece, folder)


def check_damaged(written: Written, damage: Damage, piece: int, folder: Path) -> None:
    raw = damage.done_to(written.raw)
    try:
        flats = read(raw, folder, piece)
    except TraceSqlError as error:
        assert "\n" not in str(error)
        # With other first bytes it is another format, without its key the list is another one, and
        # where its bracket was the key can have got another value.
        opens = written.raw.find(b"[", written.raw.find(b'"traceEvents"'))
        renamed = damage.begin < 4 or b'"traceEvents"' not in raw
        if isinstance(error, NotATraceError) and (renamed or damage.begin <= opens < damage.end):
            return
        # Refused as a whole: not one event stands apart from the damage.
        # What does not look like an event is not looked for behind one that is damaged.
        for span, text in zip(written.spans, written.texts, strict=True):
            assert not is_apart(span, damage) or b'"ph"' not in text, str(error)
        return
    rows = [comparable(event) for flat in flats for event in flat.rebuilt]
    lost = [loss for flat in flats for loss in flat.losses if not loss["repaired"]]
    shift = len(damage.by) - (damage.end - damage.begin)
    for span, text in zip(written.spans, written.texts, strict=True):
        if not is_apart(span, damage):
            continue
        (event,) = expected(b"[" + text + b"]")
        if comparable(event) in rows:
            rows.remove(comparable(event))
            continue
        begin, end = (place + (shift if span[0] >= damage.end else 0) for place in span)
        assert any(
            loss["byte_offset"] < end and begin < loss["byte_offset"] + loss["n_bytes"]
            for loss in lost
        ), (text, raw, flats)
    touched = sum(not is_apart(span, damage) for span in written.spans)
    assert len(rows) <= touched + damage.by.count(b"{"), (rows, raw)


def is_apart(span: tuple[int, int], damage: Damage) -> bool:
    return span[1] < damage.begin or span[0] > damage.end


@fuzz(15)
@given(data=st.data(), first=documents(), second=documents(), piece=SIZES)
def test_anything_ends_in_rows_or_one_line(
    data: st.DataObject, first: Written, second: Written, piece: int, folder: Path
) -> None:
    raw = first.raw + data.draw(st.sampled_from([b"", b"\n", b"[rank1]: word {x}\n"])) + second.raw
    for _ in range(data.draw(st.integers(0, 4))):
        raw = data.draw(damages(raw)).done_to(raw)
    if data.draw(st.booleans()):
        packed = bytearray(gzip.compress(raw, 1, mtime=0))
        for _ in range(data.draw(st.integers(0, 2))):
            packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        raw = bytes(packed[: data.draw(st.integers(1, len(packed)))])
    try:
        read(raw, folder, piece)
    except TraceSqlError as error:
        assert "\n" not in str(error)


@fuzz(10)
@given(first=documents(), second=documents(), piece=SIZES, between=st.sampled_from(["", "\n", " "]))
def test_two_documents_are_two_traces(
    first: Written, second: Written, piece: int, between: str, folder: Path
) -> None:
    flats = read(first.raw + between.encode() + second.raw, folder, piece)
    assert [flat.rebuilt for flat in flats] == [expected(first.raw), expected(second.raw)]
    assert [flat.losses for flat in flats] == [[], []], second.raw[-100:]
