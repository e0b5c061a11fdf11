"""The command line as a user meets it: answers, refusals, exit codes, hostile input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fixtures import Pass, Scenario, kind, make, serving, write
from trace_sql.cli import main
from trace_sql.command import selection_options
from trace_sql.errors import ExitCode
from trace_sql.output import WIDTH, clean

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "fixtures" / "demo"
TRACE = DEMO / "gpt-oss-TP-0.trace.json.gz"
CONFIG = DEMO / "config.json"
TRACES = ROOT / ".." / "shared" / "traces"
NAMES = [
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\u202egnp.exe",
    "</script><script>alert(1)</script>",
    "a|b`c<d>",
    "line\nbreak\r\ttab",
    "=cmd()",
    "'; drop table passes; --",
    "\x00nul",
]
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run(store: Path) -> Run:
    """Run a command in the store that the tests of this file share."""

    def invoke(*words: object) -> Result:
        result = CliRunner().invoke(main, ["--store", str(store), *map(str, words)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture(scope="module")
def demo(run: Run) -> str:
    """The id of the demo trace, ingested with its config."""
    result = run("ingest", TRACE, "--config", CONFIG, "--run", "base", "--format", "json")
    (row,) = json.loads(result.stdout)
    return str(row["trace_id"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Scenario], Path]:
    """Write a trace of three layers."""
    folder = tmp_path_factory.mktemp("made")

    def write_trace(name: str, scenario: Scenario) -> Path:
        path = folder / f"{name}.json"
        if not path.exists():
            dense = kind("sglang_llama_nvidia")
            write(make(dense.model_config(layers=3), dense, scenario), path)
        return path

    return write_trace


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with names that attack terminals, browsers, spreadsheets and SQL."""
    dense = kind("sglang_llama_nvidia")
    made = make(dense.model_config(layers=3), dense, Scenario(passes=serving(1, 1, 3)))
    renamed = 0
    for event in made.events:
        if event.get("cat") == "kernel" and not re.search("(?i)norm|embed|batch", event["name"]):
            event["name"] = NAMES[renamed % len(NAMES)]
            renamed += 1
    assert renamed > 2 * len(NAMES)
    path = tmp_path_factory.mktemp("hostile") / "ho|st\x1b[31m`ile<b>.json"
    return write(made, path, truth=False)


def answer(result: Result) -> Any:
    assert result.exit_code == ExitCode.OK, result.stderr
    return json.loads(result.stdout)


def unsafe(text: str) -> set[str]:
    kinds = {"Cc", "Cf", "Zl", "Zp"}
    return {c for c in text if unicodedata.category(c) in kinds and c != "\n"}


# Refusals: one line on stderr, nothing on stdout, the documented exit code.


def refused(result: Result, code: ExitCode, *parts: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"trace-sql: error: [^\n]+\n", result.stderr), result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (b"hello\n", ExitCode.BAD_INPUT, "byte 0"),
        (b"", ExitCode.BAD_INPUT, "empty"),
        (b'{"a":', ExitCode.BAD_INPUT, "traceEvents"),
        (b'{"schemaVersion": 1}', ExitCode.BAD_INPUT, "traceEvents"),
        (b'{"traceEvents": []}', ExitCode.EMPTY, "no device activity"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}',
            ExitCode.EMPTY,
            "no device activity",
        ),
    ],
)
@pytest.mark.parametrize("command", ["passes", "layers", "perfetto", "report"])
def test_a_file_that_holds_no_passes(
    run: Run, tmp_path: Path, command: str, content: bytes, code: ExitCode, part: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    refused(run(command, path), code, "odd", part)


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["passes", "missing.json"], ExitCode.USAGE, ["missing.json", "no such file"]),
        (["passes", "a/b"], ExitCode.USAGE, ["a/b", "no such file"]),
        (["passes", str(DEMO)], ExitCode.USAGE, ["folder", "trace-sql ingest"]),
        (["passes", "nosuch"], ExitCode.USAGE, ["'nosuch'", "gpt-oss-TP-0"]),
        (["passes"], ExitCode.USAGE, ["TRACE", "trace-sql passes --help"]),
        (["passes", "DEMO", "--foo"], ExitCode.USAGE, ["--foo", "trace-sql passes --help"]),
        (["nope"], ExitCode.USAGE, ["'nope'", "trace-sql --help"]),
        (["passes", "DEMO", "--profile", "x"], ExitCode.USAGE, ["'x'", "gpt_oss"]),
        (["passes", "DEMO", "--config", "none.json"], ExitCode.USAGE, ["none.json"]),
        (["passes", "DEMO", "--config", str(TRACE)], ExitCode.BAD_INPUT, [TRACE.name]),
        (["passes", "DEMO", "--num-layers", "0"], ExitCode.USAGE, ["--num-layers 0"]),
        (["passes", "DEMO", "--num-layers", "11"], ExitCode.REFUSED, ["11", "12"]),
        (["passes", "DEMO", "--phase", "draft"], ExitCode.FAILED, ["'draft'", "decode, prefill"]),
        (["layers", "DEMO", "--phase", "draft"], ExitCode.FAILED, ["'draft'", "decode, prefill"]),
        (["layers", "DEMO", "--pass", "99"], ExitCode.FAILED, ["pass 99", "0 to 7"]),
        (["layers", "DEMO", "--pass", "-1"], ExitCode.FAILED, ["pass -1", "0 to 7"]),
        (["layers", "DEMO", "--format", "xml"], ExitCode.USAGE, ["xml", "markdown"]),
        (["kernels", "DEMO", "--layer", "99"], ExitCode.FAILED, ["layer 99", "0 to 11"]),
        (
            ["kernels", "DEMO", "--layer", "1", "--compare-layer", "12"],
            ExitCode.FAILED,
            ["layer 12", "0 to 11"],
        ),
        (
            ["kernels", "DEMO", "--layer", "1", "--loop", "1"],
            ExitCode.FAILED,
            ["layer 1 in loop 1", "in 1 loop"],
        ),
        (["kernels", "DEMO"], ExitCode.USAGE, ["--layer"]),
        (["perfetto", "DEMO", "--layers", "2,x"], ExitCode.USAGE, ["'2,x'", "2,3,38"]),
        (["perfetto", "DEMO", "--layers", "2,77"], ExitCode.FAILED, ["layer 77"]),
        (["report", "DEMO", "--layer", "77"], ExitCode.FAILED, ["layer 77"]),
        (["report", "DEMO", "-o", "no/where.md"], ExitCode.FAILED, ["no/where.md"]),
        (["report", "DEMO", "-o", str(DEMO)], ExitCode.USAGE, ["directory"]),
        (["anchors", "nosuch"], ExitCode.USAGE, ["'nosuch'"]),
        (["model", str(TRACE)], ExitCode.BAD_INPUT, [TRACE.name]),
        (["model", "none.json"], ExitCode.USAGE, ["none.json"]),
        (["profiles", "x"], ExitCode.USAGE, ["'x'", "gpt_oss"]),
        (["schema", "x"], ExitCode.USAGE, ["'x'", "layers"]),
        (["ingest"], ExitCode.USAGE, ["PATHS"]),
        (["ingest", "none"], ExitCode.USAGE, ["none", "no such file"]),
        (["ingest", str(TRACE), "--tag", "a"], ExitCode.USAGE, ["'a'", "key=value"]),
        (["passes", "DEMO", "--anchor-offset", "1"], ExitCode.USAGE, ["--anchor-kernel"]),
        (["passes", "DEMO", "--blocks-per-layer", "2"], ExitCode.USAGE, ["--anchor-kernel"]),
        (["sql", "drop table passes"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "insert into traces values (1)"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "create table t as select 1"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "copy (select 1) to 'x.csv'"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "attach 'x.db'"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "set threads = 1"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "select 1; select 2"], ExitCode.USAGE, ["one SELECT"]),
        (["sql", ""], ExitCode.USAGE, ["one SELECT"]),
        (["sql", "selec"], ExitCode.FAILED, ["selec"]),
        (["sql", "select nope from passes"], ExitCode.FAILED, ["nope"]),
        (["sql", "from nosuchview"], ExitCode.FAILED, ["nosuchview"]),
        (["sql", f"from read_text('{CONFIG}')"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from read_csv('{CONFIG}')"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from '{CONFIG}'"], ExitCode.FAILED, [CONFIG.name]),
        (["sql", "from 'https://example.org/a.parquet'"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from glob('{DEMO}/*')"], ExitCode.FAILED, ["disabled"]),
    ],
)
def test_a_question_without_an_answer(
    run: Run, demo: str, words: list[str], code: ExitCode, parts: list[str]
) -> None:
    refused(run(*[demo if word == "DEMO" else word for word in words]), code, *parts)


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"hidden_size": 8}', b"\xff{}"])
@pytest.mark.parametrize("command", ["passes", "model"])
def test_a_config_that_is_none_is_named(
    run: Run, demo: str, tmp_path: Path, command: str, content: bytes
) -> None:
    path = tmp_path / "broken_config.json"
    path.write_bytes(content)
    words = [command, path] if command == "model" else [command, demo, "--config", path]
    refused(run(*words), ExitCode.BAD_INPUT, "broken_config.json")


def test_sql_leaves_no_file(run: Run, demo: str, tmp_path: Path) -> None:
    path = tmp_path / "written.csv"
    run("sql", f"copy (select 1) to '{path}'")
    run("sql", f"select 1; copy (select 1) to '{path}'")
    assert not path.exists()


def test_without_a_word_the_help_is_shown() -> None:
    result = CliRunner().invoke(main, [])
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "Commands:" in result.stderr


# Ingest, and the names of traces.


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
    assert [row["name"] for row in answer(result)] == ["a", "b"]
    assert result.stderr.splitlines() == [
        "skipped log0.txt, log1.txt, log2.txt, ... (5 files):"
        " name does not end in .json or .json.gz",
        "skipped config.json: it is what --config names",
    ]
    (tmp_path / "c.json").write_text("{")
    result = run("ingest", tmp_path, "--config", config, "--format", "json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert [row["state"] for row in json.loads(result.stdout)] == ["already stored"] * 2
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


# Answers.

ON_DEMO = [
    ["passes", "DEMO"],
    ["layers", "DEMO"],
    ["layers", "DEMO", "--pass", "0"],
    ["kernels", "DEMO", "--layer", "3"],
    ["kernels", "DEMO", "--layer", "3", "--compare-layer", "0"],
    ["perfetto", "DEMO", "--pass", "5", "--layers", "2,3"],
    ["perfetto", "DEMO"],
    ["anchors", "DEMO"],
    ["traces"],
    ["model", str(CONFIG)],
    ["profiles"],
    ["profiles", "gpt_oss"],
    ["schema"],
    ["schema", "kernels"],
    ["sql", "DEMO", "from kernels order by event_id limit 3"],
    ["sql", "DEMO", "from layers order by all limit 3"],
]
IDS = [" ".join(words[:1] + words[2:])[:40] for words in ON_DEMO]


@pytest.mark.parametrize("words", ON_DEMO, ids=IDS)
def test_each_answer_in_each_format(run: Run, demo: str, words: list[str]) -> None:
    words = [demo if word == "DEMO" else word for word in words]
    table = run(*words) if words[0] != "kernels" else run(*words, "--format", "table")
    assert table.exit_code == ExitCode.OK, table.stderr
    assert max(map(len, table.stdout.splitlines())) <= WIDTH
    content = answer(run(*words, "--format", "json"))
    rows = next(iter(content.values())) if isinstance(content, dict) else content
    read = list(csv.DictReader(io.StringIO(run(*words, "--format", "csv").stdout)))
    if words[0] == "perfetto" and "--pass" in words:
        rows = content["layers"]
    if words[0] == "kernels":
        rows = content.get("kernels") or [
            row for part in content["kernel_diff"].values() for row in part
        ]
        assert len(read) == len(rows)
    else:
        assert [row.keys() for row in read] == [row.keys() for row in rows]
        for text_row, row in zip(read, rows, strict=True):
            for key, value in row.items():
                if isinstance(value, float):
                    assert float(text_row[key]) == value, "CSV and JSON have all digits"
    for line in run(*words, "--format", "markdown").stdout.splitlines():
        assert re.match(r"## |\| .* \|$|\|[-:|]+\|$|$", line)


def test_what_documents_itself_fits(run: Run) -> None:
    for command, key in (("schema", "view"), ("profiles", "name")):
        for row in answer(run(command, "--format", "json")):
            lines = run(command, row[key]).stdout.splitlines()
            assert max(map(len, lines)) <= WIDTH, row[key]


@pytest.mark.parametrize("form", ["text", "compute-flow"])
@pytest.mark.parametrize("more", [[], ["--compare-layer", "2"]])
def test_kernels_for_people_fit(run: Run, demo: str, form: str, more: list[str]) -> None:
    result = run("kernels", demo, "--layer", "3", "--format", form, *more)
    assert result.exit_code == ExitCode.OK
    assert max(map(len, result.stdout.splitlines())) <= WIDTH
    assert ("GptOssForCausalLM" in result.stdout) == (form == "compute-flow")


def nanoseconds(number: Any) -> int:
    """Read a time in microseconds from its digits."""
    us, _, rest = str(number).partition(".")
    return int(us) * 1000 + int((rest + "000")[:3])


def events_of(path: Path) -> list[dict[str, Any]]:
    """Read a trace without the code under test; times keep their digits."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    events: list[dict[str, Any]] = json.loads(text, parse_float=str)["traceEvents"]
    return events


def truth_of(path: Path) -> dict[str, Any]:
    name = path.name.removesuffix(".gz").removesuffix(".json") + ".truth.json"
    truth: dict[str, Any] = json.loads(path.with_name(name).read_text())
    return truth


def seconds_of_passes(path: Path, device: int = 0) -> list[tuple[float, float]]:
    """Start and end of the true passes, counted from the earliest event as Perfetto does."""
    zero = min(nanoseconds(e["ts"]) for e in events_of(path) if e["ph"] in "XBEbneiIC")
    return [
        ((one["start_ns"] - zero) / 1e9, (one["end_ns"] - zero) / 1e9)
        for one in truth_of(path)["passes"]
        if one["device"] == device
    ]


def device_events() -> dict[int, dict[str, Any]]:
    """The demo's device events with their true places, by event_id."""
    events = events_of(TRACE)
    truth = truth_of(TRACE)
    found = {}
    for row in truth["rows"]:
        place = dict(zip(truth["columns"], row, strict=True))
        event = events[place["event_id"]]
        start, dur = nanoseconds(event["ts"]), nanoseconds(event["dur"])
        found[place["event_id"]] = {**place, "start": start, "dur": dur, "name": event["name"]}
    return found


@pytest.fixture(scope="module")
def truth() -> dict[int, dict[str, Any]]:
    return device_events()


def test_layers_against_a_plain_reading(
    run: Run, demo: str, truth: dict[int, dict[str, Any]]
) -> None:
    shown = answer(run("layers", demo, "--pass", "5", "--format", "json"))
    for row in shown["layers"]:
        own = [
            event
            for event in truth.values()
            if (event["pass_no"], event["layer_no"]) == (5, row["layer_no"])
        ]
        wall = max(e["start"] + e["dur"] for e in own) - min(e["start"] for e in own)
        assert row["wall_ms"] == wall / 1e6
        assert row["sum_dur_ms"] == sum(e["dur"] for e in own) / 1e6
        assert row["n_activities"] == len(own)
        parts = [value for key, value in row.items() if key.endswith("_ms")][2:]
        assert sum(parts) == pytest.approx(row["sum_dur_ms"])
    assert [row["layer_no"] for row in shown["layers"]] == list(range(12))
    for row in shown["clusters"]:
        of_type = [r for r in shown["layers"] if r["layer_type"] == row["layer_type"]]
        assert row["n_layers"] == len(of_type)
        assert row["avg_wall_ms"] == pytest.approx(
            sum(r["wall_ms"] for r in of_type) / len(of_type)
        )
        shares = [value for key, value in row.items() if key.endswith("_pct")][1:]
        assert sum(shares) == pytest.approx(100)


def test_kernels_against_a_plain_reading(
    run: Run, demo: str, truth: dict[int, dict[str, Any]]
) -> None:
    shown = answer(run("kernels", demo, "--pass", "5", "--layer", "3", "--format", "json"))
    own = [e for e in truth.values() if (e["pass_no"], e["layer_no"]) == (5, 3)]
    first, total = min(e["start"] for e in own), sum(e["dur"] for e in own)
    expected = [
        (
            event["event_id"],
            event["name"],
            event["slot"],
            event["dur"] / 1e3,
            100.0 * event["dur"] / total,
            (event["start"] - first) / 1e6,
        )
        for event in sorted(own, key=lambda event: (-event["dur"], event["start"]))
    ]
    keys = ("event_id", "name", "slot", "dur_us", "share_pct", "ts_rel_ms")
    assert [tuple(row[key] for key in keys) for row in shown["kernels"]] == expected
    assert [row["rank_no"] for row in shown["kernels"]] == list(range(1, len(own) + 1))


def test_two_layers_compared(run: Run, demo: str, truth: dict[int, dict[str, Any]]) -> None:
    words = ("kernels", demo, "--pass", "5", "--layer", "0", "--compare-layer", "3")
    shown = answer(run(*words, "--format", "json"))
    assert shown.keys() == {"primary", "comparison", "kernel_diff"}
    assert (shown["primary"]["layer_no"], shown["comparison"]["layer_no"]) == (0, 3)
    names = [
        {e["name"] for e in truth.values() if (e["pass_no"], e["layer_no"]) == (5, layer)}
        for layer in (0, 3)
    ]
    difference = shown["kernel_diff"]
    assert {row["name"] for row in difference["only_primary"]} == names[0] - names[1] != set()
    assert {row["name"] for row in difference["only_comparison"]} == names[1] - names[0] != set()
    assert {row["name"] for row in difference["both"]} == names[0] & names[1]


def test_perfetto_seconds_count_from_the_first_event(run: Run, demo: str) -> None:
    shown = answer(run("perfetto", demo, "--format", "json"))
    assert [(row["start_s"], row["end_s"]) for row in shown] == seconds_of_passes(TRACE)


def test_the_summary_goes_to_stderr(run: Run, demo: str) -> None:
    result = run("layers", demo)
    assert result.stderr.startswith("pass 5: first steady decode pass")
    assert "coverage: 2400 of 2632 activities in layers" in result.stderr
    assert run("layers", demo, "--pass", "5").stderr.startswith("pass 5: chosen with --pass")
    assert "clusters are left out" in run("layers", demo, "--format", "csv").stderr


# What the selection options choose.


def test_phase(run: Run, demo: str) -> None:
    prefill = run("passes", demo, "--phase", "prefill", "--format", "json")
    assert [row["pass_no"] for row in answer(prefill)] == [0]
    result = run("layers", demo, "--phase", "prefill")
    assert result.stderr.startswith("pass 0: no steady state, it is the only complete prefill pass")
    assert "Layers of pass 0" in result.stdout
    decode = answer(run("perfetto", demo, "--phase", "decode", "--format", "json"))
    assert [row["pass_no"] for row in decode] == list(range(1, 8))


def test_from_and_to(run: Run, demo: str) -> None:
    passes = answer(run("perfetto", demo, "--format", "json"))
    cut = ["--from", f"{passes[2]['start_s']:.9f}", "--to", f"{passes[4]['end_s']:.9f}"]
    result = run("passes", demo, *cut, "--format", "json")
    assert [(row["start_s"], row["end_s"]) for row in answer(result)] == [
        (row["start_s"], row["end_s"]) for row in passes[2:5]
    ]
    assert "outside the selection" in result.stderr
    refused(run("passes", demo, "--from", "1"), ExitCode.REFUSED, "--from")
    refused(run("passes", demo, "--from", "0.1", "--to", "0.05"), ExitCode.USAGE, "--to")


@pytest.mark.parametrize("option", ["--device", "--pid"])
def test_devices_are_told_apart(
    run: Run, made: Callable[[str, Scenario], Path], option: str
) -> None:
    path = made("two", Scenario(passes=serving(1, 1, 3), devices=2))
    count = ("--num-layers", "3")
    refused(run("passes", path, *count), ExitCode.REFUSED, "device 0", "device 1", option)
    for device in (0, 1):
        result = run("passes", path, *count, option, device, "--format", "json")
        shown = [(row["start_s"], row["end_s"]) for row in answer(result)]
        assert shown == seconds_of_passes(path, device)
        assert len(shown) == 5
    assert seconds_of_passes(path, 0) != seconds_of_passes(path, 1)
    refused(run("passes", path, *count, option, "7"), ExitCode.REFUSED, option)


def test_a_wrong_layer_count_is_refused_with_the_nearest(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("plain", Scenario(passes=serving(1, 1, 3)))
    result = run("passes", path, "--num-layers", "4")
    refused(result, ExitCode.REFUSED, "6 anchors", "N=4 gives 8", "residue -2", "fit N=3")
    shown = run("anchors", path, "--num-layers", "4")
    assert shown.exit_code == ExitCode.OK, "anchors explains what is refused"
    assert "refused" in shown.stdout and "residue -2" in shown.stdout
    for command in ("layers", "perfetto", "report"):
        refused(run(command, path, "--num-layers", "4"), ExitCode.REFUSED, "residue -2")
    refused(run("kernels", path, "--num-layers", "4", "--layer", "0"), ExitCode.REFUSED, "residue")


def test_a_named_anchor_takes_the_place_of_the_rules(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("plain", Scenario(passes=serving(1, 1, 3)))
    count = ("--num-layers", "3")
    rows = answer(run("passes", path, *count, "--format", "json"))
    # One attention kernel a layer: blocks from attention to attention.
    anchor = ("--anchor-kernel", "BatchQKApplyRotaryPosIds", "--blocks-per-layer", "1")
    by_anchor = answer(run("passes", path, *count, *anchor, "--format", "json"))
    assert len(by_anchor) == len(rows)
    shown = run("anchors", path, *count, *anchor)
    assert "BatchQKApplyRotaryPosIds" in shown.stdout
    assert "1*N" in shown.stdout
    # Counts that leave a residue are refused, whatever the user says.
    two = ("--anchor-kernel", "BatchQKApplyRotaryPosIds", "--blocks-per-layer", "2")
    refused(run("passes", path, *count, *two), ExitCode.REFUSED, "3 anchors", "2*N", "residue -3")
    refused(run("passes", path, *count, "--anchor-kernel", "nosuch"), ExitCode.REFUSED)
    offset = ("--anchor-kernel", "FusedAddRMSNorm", "--anchor-offset", "1")
    refused(run("passes", path, *offset), ExitCode.USAGE, "--num-layers or --config")
    none = ("--anchor-kernel", "FusedAddRMSNorm", "--blocks-per-layer", "0")
    refused(run("passes", path, *count, *none), ExitCode.USAGE, "--blocks-per-layer")


def test_no_steady_state_asks_for_a_pass(run: Run, made: Callable[[str, Scenario], Path]) -> None:
    slow = tuple(Pass("decode", 8, slow=factor) for factor in (1.0, 2.0, 3.0, 5.0))
    path = made("growing", Scenario(passes=slow))
    count = ("--num-layers", "3")
    for words in (["layers"], ["kernels", "--layer", "1"], ["perfetto", "--layers", "1"]):
        result = run(words[0], path, *count, *words[1:])
        refused(result, ExitCode.REFUSED, "no steady state", "4 complete passes", "--pass")
    refused(run("report", path, *count), ExitCode.REFUSED, "--pass")
    assert "steady" not in run("passes", path, *count).stdout
    assert run("layers", path, *count, "--pass", "2").exit_code == ExitCode.OK


def test_the_only_pass_is_shown_and_said(run: Run, made: Callable[[str, Scenario], Path]) -> None:
    path = made("single", Scenario(passes=(Pass(),)))
    result = run("layers", path, "--num-layers", "3")
    assert result.exit_code == ExitCode.OK
    assert result.stderr.startswith("pass 0: no steady state, it is the only complete pass")


def test_a_looped_pass_is_split_by_loop_or_refused(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("looped", Scenario(passes=serving(0, 0, 4), loops=2))
    count = ("--num-layers", "3")
    result = run("layers", path, *count)
    if result.exit_code != ExitCode.OK:
        refused(result, ExitCode.REFUSED, "12 anchors", "N=3", "residue 6", "fit N=6")
        return
    assert "Loop" in result.stdout
    shown = run("perfetto", path, *count, "--pass", "0", "--layers", "1", "--format", "json")
    assert [row["loop_no"] for row in answer(shown)["layers"]] == [0, 1]
    assert run("kernels", path, *count, "--layer", "1", "--loop", "1").exit_code == ExitCode.OK


# Hostile input.


@pytest.mark.parametrize(
    "words",
    [
        ["passes"],
        ["layers"],
        ["kernels", "--layer", "1"],
        ["kernels", "--layer", "1", "--compare-layer", "2"],
        ["kernels", "--layer", "1", "--format", "compute-flow"],
        ["perfetto", "--pass", "4"],
        ["anchors"],
        ["report"],
    ],
    ids=" ".join,
)
def test_hostile_names_do_no_harm(run: Run, hostile: Path, words: list[str]) -> None:
    fixed = "--format" in words or words[0] == "report"
    for form in [None] if fixed else ["table", "json", "csv", "markdown"]:
        more = [] if form is None else ["--format", form]
        result = run(words[0], hostile, "--num-layers", "3", *words[1:], *more)
        assert result.exit_code == ExitCode.OK, result.stderr
        assert unsafe(result.stdout) == set()
        assert unsafe(result.stderr) == set()
        if form == "json":
            json.loads(result.stdout)
        if form == "table":
            assert max(map(len, result.stdout.splitlines())) <= WIDTH
        if form == "markdown" or words[0] == "report":
            check_markdown(result.stdout)


def check_markdown(text: str) -> None:
    width = 0
    for line in text.splitlines():
        assert not re.search(r"(?<!\\)(?:\\\\)*[<`]", line), line
        bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0
        assert bars == width or width == 0 or bars == 0, f"a broken row: {line}"
        width = bars


def test_hostile_names_come_back_whole_from_json(run: Run, hostile: Path) -> None:
    rows = answer(run("sql", hostile, "select distinct name from kernels", "--format", "json"))
    assert set(NAMES) <= {row["name"] for row in rows}
    text = run("sql", hostile, "select distinct name from kernels", "--format", "csv").stdout
    read = {row["name"] for row in csv.DictReader(io.StringIO(text))}
    assert {clean(name) for name in NAMES if name[0] != "="} | {"'=cmd()"} <= read


def test_hostile_words_of_a_command_line(run: Run) -> None:
    for words in (["passes", "a\x1b[31m"], ["\x1b[31m"], ["layers", "--\x1b[31m"]):
        result = run(*words)
        assert result.exit_code == ExitCode.USAGE
        assert unsafe(result.stderr) == set()
    shown = run("sql", "select 1 as \"\x1b[31m\", '\x1b[31m' as x")
    assert shown.exit_code == ExitCode.OK
    assert unsafe(shown.stdout) == set()


# The report as a file.


def test_a_report_replaces_a_file_whole(run: Run, demo: str, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    link = tmp_path / "link.md"
    link.symlink_to(path)
    path.write_text("old")
    result = run("report", demo, "-o", link)
    assert (result.exit_code, result.stdout) == (ExitCode.OK, "")
    assert result.stderr == f"wrote {link}\n"
    assert path.read_text() == run("report", demo).stdout
    assert sorted(tmp_path.iterdir()) == [link, path]
    # A refused report leaves what is there.
    assert run("report", demo, "--pass", "99", "-o", path).exit_code == ExitCode.FAILED
    assert path.read_text().startswith("# gpt-oss-TP-0")


# Help.


def options_of(command: click.Command) -> Iterator[click.Option]:
    yield from (one for one in command.params if isinstance(one, click.Option))


@pytest.mark.parametrize("name", sorted(main.commands))
def test_each_option_is_explained_with_an_example(name: str) -> None:
    for option in options_of(main.commands[name]):
        words = option.help or ""
        assert len(words) > 10, option.name
        simple = isinstance(option.type, click.Choice) or option.metavar in {"FILE", "TEXT"}
        assert simple or re.search(r"--[a-z-]+ \S+|-o \S+", words), f"{option.name}: no example"


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_list_of_commands_says_each_whole(run: Run, name: str) -> None:
    assert re.search(rf"^  {name} +.*[^.]\.$", run("--help").stdout, re.MULTILINE)


def test_every_command_on_a_trace_takes_the_selection() -> None:
    wanted = {option.name for option in options_of(selection_options(click.Command("x")))}
    wanted = wanted or {one.name for one in options_of(main.commands["passes"])} - {"output_format"}
    for name, command in main.commands.items():
        if any(one.name == "trace" for one in command.params) or name in {"ingest", "sql"}:
            assert wanted <= {one.name for one in options_of(command)}, name


# As a process of its own.


def start(store: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "trace_sql", "--store", str(store), *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from trace_sql.cli import main\n"
        "for name in ['', *main.commands]:\n"
        "    assert CliRunner().invoke(main, [*name.split(), '--help']).exit_code == 0\n"
        "print([m for m in ('duckdb', '_duckdb', 'pyarrow', 'jinja2') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_reader_that_stops_early_is_no_error(store: Path, demo: str) -> None:
    process = start(store, "sql", "select * from range(100000)")
    assert process.stdout and process.stderr
    assert process.stdout.readline().split() == ["range"]
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == ExitCode.OK


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line(store: Path, demo: str) -> None:
    words = [sys.executable, "-m", "trace_sql", "--store", str(store), "passes", demo]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == ExitCode.FAILED
    assert re.fullmatch(r"trace-sql: error: the answer [^\n]+\n", done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process on Windows")
def test_interrupt_is_130(store: Path) -> None:
    query = "select sum(a.range * b.range) from range(10000000) a, range(1000000) b"
    process = start(store, "sql", query)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("", "trace-sql: error: interrupted\n")
    assert process.returncode == ExitCode.INTERRUPTED


def test_another_encoding_of_the_terminal_is_no_error(store: Path) -> None:
    words = [sys.executable, "-m", "trace_sql", "--store", str(store), "sql", "select 'é核' as a"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")
    assert done.stdout.splitlines()[-1] == b"\xe9\\u6838"


# Real traces.

REAL = [
    ("vllm_gpt_oss_120b_prefill_b200", ()),
    ("vllm_gpt_oss_20b_decode_mi300x", ("--num-layers", "24")),
    ("sglang_qwen3_8b_decode_mi300x", ("--num-layers", "36")),
    ("hf_qwen1_5_0_5b_h100", ("--profile", "transformers_eager")),
]


@pytest.mark.parametrize(("name", "options"), REAL, ids=[name for name, _ in REAL])
def test_real_traces_fit_a_terminal(run: Run, name: str, options: tuple[str, ...]) -> None:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("no shared traces beside this checkout")
    for words in (
        ["passes"],
        ["layers"],
        ["kernels", "--layer", "3"],
        ["kernels", "--layer", "3", "--format", "compute-flow"],
        ["kernels", "--layer", "3", "--compare-layer", "0"],
        ["perfetto", "--layers", "3"],
        ["anchors"],
    ):
        result = run(words[0], path, *options, *words[1:])
        assert result.exit_code == ExitCode.OK, result.stderr
        assert max(map(len, result.stdout.splitlines())) <= WIDTH
        assert unsafe(result.stdout) == set()
    report = run("report", path, *options)
    assert report.exit_code == ExitCode.OK
    check_markdown(report.stdout)


def test_a_folder_may_hold_json_that_is_no_trace(run: Run) -> None:
    done = run("ingest", DEMO)
    assert done.exit_code == ExitCode.OK
    assert "config.json, gpt-oss-TP-0.trace.truth.json: JSON without a list" in done.stderr
    named = run("ingest", CONFIG)
    assert named.exit_code == ExitCode.BAD_INPUT
    assert not named.stdout


def test_an_empty_selection_names_what_there_is(run: Run, demo: str) -> None:
    result = run("passes", demo, "--device", 99)
    assert result.exit_code == ExitCode.REFUSED
    assert "kernels run on device 0 (pid 0)" in result.stderr
    backwards = run("passes", demo, "--from", 2, "--to", 1)
    assert backwards.exit_code == ExitCode.USAGE
    assert "--from 2 is not before --to 1" in backwards.stderr
