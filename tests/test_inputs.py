"""Files, folders and archives: what is taken as what, what is skipped and why, who conflicts."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trace_sql import workers
from trace_sql.cli import main
from trace_sql.database import Database
from trace_sql.errors import BadInputError, ExitCode, UsageError
from trace_sql.inputs import expand, single, trace_name
from trace_sql.output import WIDTH
from trace_sql.settings import Settings
from trace_sql.store import Store
from trace_sql.workers import Outcome, ingest_all

REPO = Path(__file__).resolve().parents[1]
CASE = REPO / ".." / "shared" / "cases" / "26_rank_folder"
RANKS = REPO / ".." / "shared" / "traces" / "ranks"


def trace(kernels: int = 1, **keys: Any) -> bytes:
    """Return a trace whose content differs with its arguments."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "ts": at, "dur": 1}
        for at in range(kernels)
    ]
    for event in events:
        event["args"] = {"device": 0, "stream": 7}
    return json.dumps({"traceEvents": events + keys.pop("more", []), **keys}).encode()


def of_rank(rank: int, kernels: int = 1, world: int = 8) -> bytes:
    return trace(kernels, distributedInfo={"rank": rank, "world_size": world})


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def invoke(store: Path, *words: object) -> Result:
    result = CliRunner().invoke(main, ["--store", str(store), *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows(result: Result) -> dict[str, dict[str, Any]]:
    """Return the rows of `ingest --format json` by file name."""
    return {Path(row["path"]).name: row for row in json.loads(result.stdout)}


def ingested(root: Path, files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Return what `trace_files` says of a folder, by file name."""
    done = invoke(root / "store", "ingest", folder(root / "in", files), "--format", "json")
    assert done.exit_code == ExitCode.OK, done.stderr
    return rows(done)


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a.json", "a"),
        ("a.json.gz", "a"),
        ("a.json.zst", "a"),
        ("a.trace.json.gz", "a"),
        ("a.json.tmp", "a"),
        ("host_1.170.pt.trace.json", "host_1.170"),
        ("a.pt", "a"),
        ("a.b", "a.b"),
        (".json", ".json"),
    ],
)
def test_trace_name(file_name: str, name: str) -> None:
    assert trace_name(Path("folder") / file_name) == name
    assert trace_name(Path("all.zip"), f"folder/{file_name}") == name


# What is taken.


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    root = folder(
        tmp_path,
        {
            "b/z.json": trace(),
            "b/c/no_ending": trace(2),
            "b/packed.log": gzip.compress(trace(3)),
            "b/notes.txt": b"words",
            "b/[log].txt": b"[INFO] started",
            "b/empty.json": b"",
            "b/model.pt": b"\x80\x02}.",
            "b/._z.json": trace(),
            "b/.git/config": b"",
            "odd.txt": trace(4),
        },
    )
    found = expand([root / "b", root / "b" / "z.json", root / "odd.txt", root / "odd.txt"])
    taken = [one.path.relative_to(root).as_posix() for one in found.inputs]
    assert taken == ["b/c/no_ending", "b/packed.log", "b/z.json", "odd.txt"]
    assert [one.named for one in found.inputs] == [False, False, False, True]
    assert found.errors == []
    text = "plain text, no JSON object or list"
    reasons = {Path(one.label).name: one.reason for one in found.skipped}
    assert reasons == {
        "notes.txt": text,
        "[log].txt": text,
        "empty.json": "empty file",
        "model.pt": "a Python pickle; give a JSON trace as torch.profiler writes it",
        "._z.json": "hidden file",
        ".git": "hidden folder",
    }
    with pytest.raises(UsageError, match="missing: no such file"):
        expand([root / "missing"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_links_and_files_that_are_none(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"b.json": trace(), "d/e.json": trace(2)})
    folder(tmp_path / "out", {"far.json": trace(3)})
    os.mkfifo(root / "pipe")
    (root / "a_link.json").symlink_to(root / "b.json")
    (root / "gone").symlink_to(root / "nowhere")
    (root / "round").symlink_to(root / "round")
    (root / "zero").symlink_to("/dev/zero")
    (root / "d" / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "out")
    os.link(root / "b.json", root / "z_hard.json")
    found = expand([root])
    # A file is taken where it is, and what stands elsewhere by its link.
    taken = [one.path.relative_to(root).as_posix() for one in found.inputs]
    assert taken == ["b.json", "d/e.json", "out/far.json"]
    reasons = {Path(one.label).name: one.reason for one in found.skipped}
    assert reasons.pop("gone").startswith("a link that leads nowhere")
    assert reasons.pop("round").startswith("a link that leads nowhere")
    assert reasons == {
        "pipe": "a pipe",
        "zero": "a device",
        "a_link.json": "the same file as b.json",
        "z_hard.json": "the same file as b.json",
        "loop": "a link to a folder that is read already",
    }
    named = expand([root / "pipe", root / "zero"])
    assert [str(error) for error in named.errors] == [
        f"{root}/pipe: a pipe; give a regular file",
        f"{root}/zero: a device; give a regular file",
    ]


def test_a_folder_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path, {"a.json": trace(), "closed/b.json": trace(2)})
    scan = os.scandir

    def refuse(path: Path) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("trace_sql.inputs.os.scandir", refuse)
    found = expand([root])
    assert [one.path.name for one in found.inputs] == ["a.json"]
    (skipped,) = found.skipped
    assert skipped.reason == "a folder that cannot be opened (Permission denied)"


def test_archives_in_folders_and_named(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": trace()})
    with zipfile.ZipFile(root / "ranks.zip", "w") as archive:
        archive.writestr("run/rank0_trace.json.gz", gzip.compress(of_rank(0)))
        archive.writestr("run/notes.txt", "words")
        archive.writestr("run/inner.zip", b"PK\x03\x04" + bytes(30))
    with zipfile.ZipFile(root / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    zipped = root / "ranks.zip"
    found = expand([root])
    assert [(one.path.name, one.member) for one in found.inputs] == [
        ("a.json", None),
        ("ranks.zip", "run/rank0_trace.json.gz"),
    ]
    assert {Path(one.label).name: one.reason for one in found.skipped} == {
        "model.pt": "a file of torch.save",
        "notes.txt": "plain text, no JSON object or list",
        "inner.zip": "an archive inside an archive",
    }
    assert [one.member for one in expand([zipped]).inputs] == ["run/rank0_trace.json.gz"]
    one = single(Path(f"{zipped}!run/rank0_trace.json.gz"))
    assert (one.path, one.member, one.named) == (zipped, "run/rank0_trace.json.gz", True)
    assert single(zipped).label == f"{zipped}!run/rank0_trace.json.gz"
    with pytest.raises(BadInputError, match=r"model\.pt: a file of torch\.save"):
        single(root / "model.pt")
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("rank1_trace.json", of_rank(1))
    with pytest.raises(UsageError, match="holds 2 traces, name one: .*!rank1_trace.json"):
        single(zipped)


def test_a_cut_archive_is_an_error_and_gives_what_it_can(tmp_path: Path) -> None:
    packed = tmp_path / "a.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}.json", trace(99, number=number))
    packed.write_bytes(packed.read_bytes()[:-300])
    found = expand([tmp_path])
    assert [one.member for one in found.inputs] == ["0.json", "1.json", "2.json"]
    assert [str(error) for error in found.errors] == [
        f"{packed}: the zip archive is cut or damaged; copy it again"
    ]


def test_members_become_traces(tmp_path: Path) -> None:
    packed = tmp_path / "ranks.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("run/7-TP-0.trace.json", trace(1))
        archive.writestr("run/7-TP-1.trace.json.gz", gzip.compress(trace(2)))
    done = invoke(tmp_path / "store", "ingest", packed, "--format", "json")
    assert done.exit_code == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    assert [(row["name"], row["rank"], row["rank_source"]) for row in found] == [
        ("7-TP-0", 0, "name"),
        ("7-TP-1", 1, "name"),
    ]
    assert found[1]["path"] == f"{packed}!run/7-TP-1.trace.json.gz"
    # The same bytes outside are the same trace.
    alone = tmp_path / "7-TP-1.trace.json.gz"
    alone.write_bytes(zipfile.ZipFile(packed).read("run/7-TP-1.trace.json.gz"))
    (again,) = json.loads(invoke(tmp_path / "store", "ingest", alone, "--format", "json").stdout)
    assert (again["trace_id"], again["state"]) == (found[1]["trace_id"], "already stored")


def test_any_command_takes_a_member(tmp_path: Path) -> None:
    packed = tmp_path / "ranks.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes.txt", "words")
        archive.writestr("run/0.json", trace(3))
    for word in (packed, f"{packed}!run/0.json"):
        done = invoke(tmp_path / "store", "categories", word, "--format", "json")
        assert done.exit_code == ExitCode.OK, done.stderr
        assert '"other"' in done.stdout
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("run/1.json", trace(4))
    several = invoke(tmp_path / "store", "categories", packed)
    assert several.exit_code == ExitCode.USAGE
    assert "!run/0.json" in several.stderr and "!run/1.json" in several.stderr


# What each file is.


@pytest.mark.skipif(not CASE.is_dir(), reason="needs the odd inputs in ../shared/cases")
def test_a_folder_of_every_kind(tmp_path: Path) -> None:
    done = invoke(tmp_path, "ingest", CASE, "--format", "json")
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
        text = invoke(tmp_path, "ingest", CASE, "--format", output_format).stdout
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
    done = invoke(tmp_path / "store", "ingest", root, "--format", "json")
    found = json.loads(done.stdout)
    assert len(found) == 2
    assert [bool(row["conflict"]) for row in found] == [conflict] * 2
    assert done.stderr.count("is in 2 files") == conflict
    if conflict:
        assert [row["conflict"] for row in found] == [[row["trace_id"]] for row in found[::-1]]


def test_many_of_one_rank_take_one_line(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {f"{n}.json": of_rank(0, n + 1) for n in range(6)})
    done = invoke(tmp_path / "store", "ingest", root, "--format", "json")
    assert rows(done)["5.json"]["note"] == "same rank as 0, 1, 2, ... (5 names)"
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: rank 0 is in 6 files: 0 (") and ", ...; name" in line


def test_runs_of_one_folder_do_not_conflict(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": of_rank(0), "b.json": of_rank(0, 2)})
    for name in ("a", "b"):
        invoke(tmp_path / "store", "ingest", root / f"{name}.json", "--run", name)
    query = "select conflict from trace_files"
    answer = invoke(tmp_path / "store", "sql", query, "--format", "json")
    assert json.loads(answer.stdout) == [{"conflict": None}] * 2


@pytest.mark.skipif(not RANKS.is_dir(), reason="needs the traces in ../shared/traces")
def test_real_ranks(tmp_path: Path) -> None:
    found = rows(invoke(tmp_path, "ingest", RANKS, "--format", "json"))
    assert [(row["role"], row["rank"], row["world_size"]) for row in found.values()] == [
        ("rank", 0, 128),
        ("rank", 1, 128),
    ]


# The command.


def test_what_is_skipped_is_in_the_table(tmp_path: Path) -> None:
    files = {f"log{number}.txt": b"words" for number in range(5)}
    root = folder(tmp_path / "in", {"a.json": trace(), "config.json": b"{}", **files})
    told = invoke(tmp_path / "store", "ingest", root)
    assert "(5 files)" in told.stdout and "log2.txt" in told.stdout and "log3" not in told.stdout
    found = rows(invoke(tmp_path / "store", "ingest", root, "--format", "json"))
    assert len(found) == 7
    assert found["log4.txt"]["state"] == "skipped"
    assert found["config.json"]["note"] == "JSON without a list traceEvents"
    assert found["a.json"]["state"] == "already stored"


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": trace(), "b.json": b"hello", "c.json": trace(2)})
    done = invoke(tmp_path / "store", "ingest", root, "--format", "json")
    assert done.exit_code == ExitCode.BAD_INPUT
    assert [row["name"] for row in json.loads(done.stdout)] == ["a", "c"]
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"trace-sql: error: {root}/b.json: ")


def test_a_copy_says_whose(tmp_path: Path) -> None:
    found = ingested(tmp_path, {"a.json": trace(), "b.json": trace()})
    assert [row["state"] for row in found.values()] == ["new", "copy"]
    assert found["b.json"]["note"] == "same content as a"
    assert found["a.json"]["trace_id"] == found["b.json"]["trace_id"]


# Many at once.


def outcomes(
    root: Path, processes: int | None, calls: list[tuple[int, int, int, int]] | None = None
) -> list[Outcome]:
    def progress(*numbers: int) -> None:
        if calls is not None:
            calls.append((numbers[0], numbers[1], numbers[2], numbers[3]))

    found = expand([root / "in"])
    store = Store(root / f"store{processes}")
    return ingest_all(store, found.inputs, Settings(run="r"), progress, processes)


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    folder(
        tmp_path / "in",
        {
            **{f"{number}.json": trace(number + 1) for number in range(5)},
            "bad.json": b"hello",
            "copy.json": trace(1),
            "none.json": b"{}",
        },
    )
    calls: list[tuple[int, int, int, int]] = []
    one, two = outcomes(tmp_path, 1), outcomes(tmp_path, 2, calls)
    ids = [[done.trace_id for done in outcome.ingested] for outcome in two]
    assert ids == [[done.trace_id for done in outcome.ingested] for outcome in one]
    assert [type(outcome.error) for outcome in two] == [type(outcome.error) for outcome in one]
    assert [str(outcome.error) for outcome in two] == [str(outcome.error) for outcome in one]
    assert sum(outcome.error is not None for outcome in two) == 2
    total = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert calls[-1] == (8, 8, total, total)
    assert [call[2] for call in calls] == sorted(call[2] for call in calls)
    for entry in Store(tmp_path / "store2").traces():
        assert entry.settings.run == "r"


def test_a_process_that_is_killed_costs_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "in", {f"{number}.json": trace(number + 1) for number in range(3)})
    start: Callable[..., Any] = workers._start
    killed: list[Any] = []

    def doomed(*arguments: Any) -> Any:
        worker = start(*arguments)
        if not killed:
            killed.append(worker)
            worker.process.kill()
            worker.process.join()
        return worker

    monkeypatch.setattr(workers, "_start", doomed)
    found = outcomes(tmp_path, 2)
    errors = [str(outcome.error) for outcome in found if outcome.error]
    assert len(errors) == 1 and "ended (signal 9)" in errors[0]
    assert sum(len(outcome.ingested) for outcome in found) == 2


def test_small_folders_need_no_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "in", {"a.json": trace(), "b.json": trace(2)})
    monkeypatch.setattr(workers, "_cores", lambda: 64)
    monkeypatch.setattr(workers, "_start", None)
    assert [len(outcome.ingested) for outcome in outcomes(tmp_path, None)] == [1, 1]
    inputs = expand([tmp_path / "in"]).inputs
    monkeypatch.setattr(workers, "_WORTH_BYTES", 10)
    assert workers._useful(Store(tmp_path), inputs) == 2
    assert workers._useful(Store(tmp_path, memory_limit=1 << 28), inputs) == 1
    monkeypatch.setattr(workers, "_cores", lambda: 2)
    assert workers._useful(Store(tmp_path), inputs) == 1


INTERRUPTED = """
import sys
from pathlib import Path
from trace_sql.inputs import expand
from trace_sql.settings import Settings
from trace_sql.store import Store
from trace_sql.workers import ingest_all

if __name__ == "__main__":
    root = Path(sys.argv[1])
    inputs = expand([root / "in"]).inputs
    try:
        ingest_all(Store(root / "store"), inputs, Settings(), lambda *_: print(flush=True), 2)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interrupt_leaves_no_process(tmp_path: Path) -> None:
    folder(tmp_path / "in", {f"{number}.json": trace(20_000 + number) for number in range(6)})
    (tmp_path / "script.py").write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    # As a terminal does, to all of them.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out.split() == ["interrupted"]
    assert err == ""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")
