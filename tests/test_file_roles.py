"""What each file of a folder is: role, rank, stage; and which files conflict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import command
from conftest import SHARED
from folders import folder, ingested, of_rank, rows, trace

from trace_sql.database import Database
from trace_sql.errors import ExitCode
from trace_sql.output import WIDTH
from trace_sql.store import Store

CASE = SHARED / "cases" / "26_rank_folder"
RANKS = SHARED / "traces" / "ranks"


@pytest.mark.skipif(not CASE.is_dir(), reason="needs the odd inputs in ../shared/cases")
def test_a_folder_of_every_kind(tmp_path: Path) -> None:
    done = command(tmp_path, "ingest", CASE, "--format", "json")
    assert done.exit_code == ExitCode.OK
    found = {
        name: (row["role"], row["rank"], row["rank_source"], row["stage"])
        for name, row in rows(done).items()
    }
    assert found == {
        "1700000000.1-TP-0-DECODE.trace.json.gz": ("rank", 0, "header", "decode"),
        "1700000000.1-TP-0-EXTEND.trace.json.gz": ("rank", 0, "header", "prefill"),
        "1700000000.1-TP-10-EP-2-DECODE.trace.json.gz": ("rank", 10, "header", "decode"),
        "bs_8_rank0.json.gz": ("capture", 0, "header", None),
        "copy_of_rank2.json": ("rank", 2, "header", None),
        "dp0_pp0_tp1_dcp0_ep1_rank1.1700000000123456789.pt.trace.json.gz": (
            *("rank", 1, "name"),
            None,
        ),
        "merged-1700000000.1.trace.json.gz": ("merged", None, "unknown", None),
        "rank2_trace.json": ("rank", 2, "header", None),
        "toyhost_321.async_llm.1700000000123456789.pt.trace.json.gz": (
            *("cpu_only", None, "unknown"),
            None,
        ),
        # Its content is that of the vLLM file, whose name does not hold for it.
        "toyhost_654.1700000000123456789.pt.trace.json.gz": ("unranked", None, "unknown", None),
        "profiler_out_0.txt": (None, None, None, None),
    }
    conflicts = {name: row["note"] for name, row in rows(done).items() if row["conflict"]}
    assert conflicts == {
        "copy_of_rank2.json": "same rank as rank2_trace",
        "rank2_trace.json": "same rank as copy_of_rank2",
    }
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: rank 2 is in 2 files: copy_of_rank2 (")
    assert rows(done)["profiler_out_0.txt"]["state"] == "skipped"
    for output_format in ("table", "csv", "markdown"):
        text = command(tmp_path, "ingest", CASE, "--format", output_format).stdout
        assert "cpu_only" in text and "profiler_" in text
        assert output_format != "table" or max(map(len, text.splitlines())) <= WIDTH


HEADERLESS = [
    ("1700000000.1-TP-10-EP-2-DECODE.trace.json.gz", 10, "tp10 ep2"),
    ("1700000000.1-TP-3.trace.json.gz", 3, "tp3"),
    ("1700000000.1-TP-1-DP-2-PP-0.trace.json.gz", 1, "tp1 dp2 pp0"),
    ("1700000000.1-TP-1-PP-1.trace.json.gz", None, "tp1 pp1"),
    ("dp0_pp0_tp1_dcp0_ep1_rank1.17000.pt.trace.json.gz", 1, "tp1 dp0 pp0 ep1"),
    ("rank0_trace.json", 0, None),
    ("sampled_rank-12.json.gz", 12, None),
    ("rank1_of_rank2.json", None, None),
    ("rank0123456789.json", None, None),
    ("frank1.json", None, None),
]


def test_names_tell_the_rank_of_each_file(tmp_path: Path) -> None:
    """Of files of one content too, where the view reads the names and not the facts."""
    alone = ingested(tmp_path / "a", {name: trace(1, name=name) for name, _, _ in HEADERLESS})
    copies = ingested(
        tmp_path / "b", {"zero.json": trace(), **{n: trace() for n, _, _ in HEADERLESS}}
    )
    for name, rank, place in HEADERLESS:
        source = "unknown" if rank is None else "name"
        for found in (alone, copies):
            row = found[name]
            assert (row["rank"], row["rank_source"], row["place"]) == (rank, source, place), name
            assert row["role"] == ("rank" if rank is not None or place else "unranked")
    with _session(tmp_path / "a") as db:
        facts = {row["path"]: row["rank"] for row in db.query("from traces").dicts()}
    assert {Path(path).name: rank for path, rank in facts.items()} == {
        name: rank for name, rank, _ in HEADERLESS
    }


def _session(root: Path) -> Database:
    store = Store(root / "store")
    return Database(store, {entry.trace_id: entry.settings for entry in store.traces()})


CAPTURE = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamBeginCapture", "ts": 1, "dur": 1},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamEndCapture", "ts": 9, "dur": 1},
]
REPLAY = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "ts": 20, "dur": 1}
MERGED = [
    {"ph": "X", "cat": "kernel", "name": "k", "pid": f"[TP0{rank}-EP00] 3", "ts": 5, "dur": 1}
    for rank in range(2)
]


@pytest.mark.parametrize(
    ("name", "content", "role"),
    [
        ("a.json", of_rank(1), "rank"),
        ("a.json", trace(), "unranked"),
        ("a-TP-0-PP-1.json", trace(), "rank"),
        ("a.json", trace(more=MERGED, distributedInfo={"rank": 0}), "merged"),
        ("a.json", trace(more=MERGED[:1], distributedInfo={"rank": 0}), "rank"),
        ("merged-a.json", of_rank(0), "merged"),
        ("rank0.json", trace(more=CAPTURE), "capture"),
        ("rank0.json", trace(more=[*CAPTURE, REPLAY]), "rank"),
        ("capture_traces/rank0.json", of_rank(0), "capture"),
        ("bs_16_rank3.json", of_rank(3), "capture"),
        ("rank0.json", trace(0, more=CAPTURE[:1]), "capture"),
        ("rank0.json", trace(0, more=[REPLAY]), "cpu_only"),
        ("rank0.json", trace(0), "cpu_only"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_roles(name: str, content: bytes, role: str, tmp_path: Path) -> None:
    (row,) = ingested(tmp_path, {name: content}).values()
    assert row["role"] == role


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("1-TP-0-DECODE.trace.json", "decode"),
        ("1-TP-0-EXTEND.trace.json", "prefill"),
        ("prefill/rank0.json", "prefill"),
        ("decode/rank0.json", "decode"),
        ("decoded/rank0.json", None),
        ("rank0.json", None),
    ],
)
def test_stages(name: str, stage: str | None, tmp_path: Path) -> None:
    (row,) = ingested(tmp_path, {name: trace()}).values()
    assert row["stage"] == stage


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (("rank2_trace.json", of_rank(2)), ("copy.json", of_rank(2, 2)), True),
        (("a.json", of_rank(2)), ("b.json", of_rank(3)), False),
        (("a.json", of_rank(2)), ("b.json", of_rank(2, 2, world=4)), False),
        (("a.json", of_rank(2)), ("b.json", trace(2, distributedInfo={"rank": 2})), True),
        (("x/a.json", of_rank(2)), ("y/a.json", of_rank(2, 2)), False),
        # Of one content: said of the file, no conflict.
        (("a.json", of_rank(2)), ("b.json", of_rank(2)), False),
        (("1-TP-0-DECODE.json", trace(1)), ("1-TP-0-EXTEND.json", trace(2)), False),
        (("1-TP-0.json", trace(1)), ("1-TP-0.trace.json", trace(2)), True),
        (("1-TP-0.json", trace(1)), ("2-TP-0.json", trace(2)), False),
        (("1-TP-0.json", trace(1)), ("rank0_trace.json", trace(2)), True),
        # Replicas count their own ranks, and stages of a pipeline have equal places in TP.
        (("1-TP-0-DP-0.json", of_rank(0)), ("1-TP-0-DP-1.json", of_rank(0, 2)), False),
        (("1-TP-0-PP-1.json", trace(1)), ("1-TP-0-PP-2.json", trace(2)), False),
        (("1-TP-0-PP-1.json", trace(1)), ("1-TP-0-PP-1.trace.json", trace(2)), True),
        (("merged-1.json", of_rank(0)), ("1-TP-0.json", of_rank(0, 2)), False),
        (("bs_1_rank0.json", of_rank(0)), ("bs_2_rank0.json", of_rank(0, 2)), False),
        (("a.json", trace(1)), ("b.json", trace(2)), False),
    ],
)
def test_conflicts(
    first: tuple[str, bytes], second: tuple[str, bytes], conflict: bool, tmp_path: Path
) -> None:
    root = folder(tmp_path / "in", dict((first, second)))
    done = command(tmp_path / "store", "ingest", root, "--format", "json")
    found = json.loads(done.stdout)
    assert len(found) == 2
    assert [bool(row["conflict"]) for row in found] == [conflict] * 2
    assert done.stderr.count("is in 2 files") == conflict
    if conflict:
        assert [row["conflict"] for row in found] == [[row["trace_id"]] for row in found[::-1]]


def test_many_of_one_rank_take_one_line(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {f"{n}.json": of_rank(0, n + 1) for n in range(6)})
    done = command(tmp_path / "store", "ingest", root, "--format", "json")
    assert rows(done)["5.json"]["note"] == "same rank as 0, 1, 2, ... (5 names)"
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: rank 0 is in 6 files: 0 (") and ", ...; name" in line


def test_runs_of_one_folder_do_not_conflict(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": of_rank(0), "b.json": of_rank(0, 2)})
    for name in ("a", "b"):
        command(tmp_path / "store", "ingest", root / f"{name}.json", "--run", name)
    query = "select conflict from trace_files"
    answer = command(tmp_path / "store", "sql", query, "--format", "json")
    assert json.loads(answer.stdout) == [{"conflict": None}] * 2


@pytest.mark.skipif(not RANKS.is_dir(), reason="needs the traces in ../shared/traces")
def test_real_ranks(tmp_path: Path) -> None:
    found = rows(command(tmp_path, "ingest", RANKS, "--format", "json"))
    assert [(row["role"], row["rank"], row["world_size"]) for row in found.values()] == [
        ("rank", 0, 128),
        ("rank", 1, 128),
    ]
