"""Ingest as a user meets it: what is new, what is left out, and the names of traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import CONFIG, DEMO, TRACE, Run, answer, command, refused
from folders import folder, ingested, rows, trace

from trace_sql.cli import main
from trace_sql.errors import ExitCode


def test_ingest_says_what_is_new(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one.trace.json.gz"
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"device": 0}}
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [event]}).encode()))
    first = run("ingest", path, "--run", "r", "--tag", "tp=8", "--tag", "gpu=H200")
    second = run("ingest", path, "--tag", "tp=4")
    assert [result.exit_code for result in (first, second)] == [0, 0]
    assert "new" in first.stdout and "already stored" in second.stdout
    (row,) = answer(run("sql", "one", "select run, tags, n_events from traces", "--format", "json"))
    assert row == {"run": "r", "tags": {"tp": "4", "gpu": "H200"}, "n_events": 1}
    assert "one" in run("traces").stdout


def test_the_store_may_stand_behind_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACE_SQL_STORE", str(tmp_path / "another"))
    for words in (("ingest", str(TRACE)), ("traces",)):
        done = CliRunner().invoke(main, [*words, "--store", str(tmp_path / "mine")])
        assert "gpt-oss-TP-0" in done.stdout
    assert not (tmp_path / "another").exists()


def test_ingest_of_a_folder(run: Run, tmp_path: Path) -> None:
    for name in ("a.json", "deep/b.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"traceEvents": [{"ph": "i", "name": name, "ts": 1}]}))
    for number in range(5):
        (tmp_path / f"log{number}.txt").write_text("words")
    (tmp_path / "config.json").write_text(CONFIG.read_text())
    config = tmp_path / "config.json"
    result = run("ingest", tmp_path, "--config", config, "--format", "json")
    found = answer(result)
    assert [row["name"] for row in found if row["trace_id"]] == ["a", "b"]
    skipped = {row["name"]: row["note"] for row in found if row["state"] == "skipped"}
    text = "plain text, no JSON object or list"
    assert skipped == {
        **{f"log{number}.txt": text for number in range(5)},
        "config.json": "it is what --config names",
    }
    assert result.stderr == ""
    (tmp_path / "c.json").write_text("{")
    result = run("ingest", tmp_path, "--config", config, "--format", "json")
    assert result.exit_code == ExitCode.BAD_INPUT
    states = [row["state"] for row in json.loads(result.stdout) if row["trace_id"]]
    assert states == ["already stored"] * 2
    assert "c.json" in result.stderr


def test_nothing_to_ingest(run: Run, tmp_path: Path) -> None:
    refused(run("ingest", tmp_path), ExitCode.FAILED, "no trace found")
    (tmp_path / "a.json").write_text("{")
    refused(run("ingest", tmp_path), ExitCode.BAD_INPUT, "a.json")


def test_a_trace_by_path_id_name_and_prefix(run: Run, demo: str) -> None:
    shown = run("passes", demo).stdout
    for name in (demo[:6], "gpt-oss-TP-0", "gpt-o"):
        assert run("passes", name).stdout == shown
    # What was said of the trace once holds for its file too.
    assert run("passes", TRACE).stdout == shown


def test_a_prefix_of_two_traces(run: Run, tmp_path: Path) -> None:
    for number in range(2):
        path = tmp_path / f"twin-{number}.json"
        path.write_text(json.dumps({"traceEvents": [{"ph": "i", "name": str(number), "ts": 1}]}))
        assert run("ingest", path).exit_code == ExitCode.OK
    refused(run("passes", "twin"), ExitCode.USAGE, "2 traces", "twin-0", "twin-1")


def test_a_folder_may_hold_json_that_is_no_trace(run: Run) -> None:
    done = run("ingest", DEMO, "--format", "json")
    skipped = [row for row in answer(done) if row["state"] == "skipped"]
    assert [row["name"] for row in skipped] == ["config.json", "gpt-oss-TP-0.trace.truth.json"]
    assert {row["note"] for row in skipped} == {"JSON without a list traceEvents"}
    named = run("ingest", CONFIG)
    assert named.exit_code == ExitCode.BAD_INPUT
    assert not named.stdout


def test_what_is_skipped_is_in_the_table(tmp_path: Path) -> None:
    files = {f"log{number}.txt": b"words" for number in range(5)}
    root = folder(tmp_path / "in", {"a.json": trace(), "config.json": b"{}", **files})
    told = command(tmp_path / "store", "ingest", root)
    assert "(5 files)" in told.stdout and "log2.txt" in told.stdout and "log3" not in told.stdout
    found = rows(command(tmp_path / "store", "ingest", root, "--format", "json"))
    assert len(found) == 7
    assert found["log4.txt"]["state"] == "skipped"
    assert found["config.json"]["note"] == "JSON without a list traceEvents"
    assert found["a.json"]["state"] == "already stored"


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": trace(), "b.json": b"hello", "c.json": trace(2)})
    done = command(tmp_path / "store", "ingest", root, "--format", "json")
    assert done.exit_code == ExitCode.BAD_INPUT
    assert [row["name"] for row in json.loads(done.stdout)] == ["a", "c"]
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"trace-sql: error: {root}/b.json: ")


def test_a_copy_says_whose(tmp_path: Path) -> None:
    found = ingested(tmp_path, {"a.json": trace(), "b.json": trace()})
    assert [row["state"] for row in found.values()] == ["new", "copy"]
    assert found["b.json"]["note"] == "same content as a"
    assert found["a.json"]["trace_id"] == found["b.json"]["trace_id"]
