"""Answers of the commands, in each format and against a plain reading of the trace."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CONFIG, TRACE, Run, answer, check_markdown, unsafe
from plain_reading import events_of, nanoseconds, seconds_of_passes, truth_of

from trace_sql.errors import ExitCode
from trace_sql.output import WIDTH

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"

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
