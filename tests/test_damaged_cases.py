"""Damaged files of the shared cases, as a user sees them: every loss has its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, answer, command, refused
from conftest import SHARED

from trace_sql.errors import ExitCode

CASES = SHARED / "cases"


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
