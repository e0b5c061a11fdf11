"""Time by category, and the rules printed for kernels that no rule knows."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from fixtures import Scenario, kind, make, serving, write
from trace_sql.breakdown import kernel_pattern, pasted_rules
from trace_sql.cli import main
from trace_sql.output import WIDTH
from trace_sql.profile import load_profiles
from trace_sql.resources import data_folder

UNKNOWN = {
    "void acme::frobnicate_kernel<float, 128, true>(float*, int)": "frobnicate_kernel",
    "void acme::frobnicate_kernel<__half, 256, false>(__half*, int)": "frobnicate_kernel",
    "zork_apply_17": "zork_apply",
    "zork_apply_42": "zork_apply",
    "_ZN4acme16wobble_128x64_blE": "wobble_",
    "void (anonymous namespace)::kernel<3>(int)": "kernel",
    "void cutlass::device_kernel<acme::sm90::Zorker<4, float> >(acme::Params)": "Zorker",
    "quux'\"\\kernel é": "quux",
    "tab\there\u202egnp": "tab",
    "q(": "q",
}
"""Names that no rule knows, and what their pattern must hold."""
RELATIVES = [
    ("void acme::frobnicate_kernel<float, 128>(float*)", "void acme::frobnicate_kernel<int>(x)"),
    ("zork_apply_17", "zork_apply_3"),
    ("zork_apply_17", "zork_apply"),
    ("zork_64x128_b", "zork_32x16_b"),
    ("_ZN4acme10wobble_128E", "_ZN4acme9wobble_64E"),
    ("zork_apply.kd", "zork_apply"),
]
STRANGERS = [
    ("zork_apply_17", "zork_apply_back_3"),
    ("zork_apply_17", "my_zork_apply_17"),
    ("void acme::kernel<3>(int)", "void other::kernel<3>(int)"),
    ("kernel", "some_kernel"),
    ("void cutlass::device_kernel<acme::Zorker<4>>(x)", "void cutlass::device_kernel<a::B>(x)"),
]
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def invoke(*words: object) -> Any:
        done = CliRunner().invoke(main, ["--store", str(tmp_path / "store"), *map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return invoke


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace that cannot be split: all kernels have names that no rule knows."""
    chosen = kind("sglang_qwen3_amd")
    made = make(chosen.model_config(3), chosen, Scenario(passes=serving(0, 0, 2)))
    names = sorted({event["name"] for event in made.events if event.get("cat") == "kernel"})
    others = dict(zip(names, UNKNOWN, strict=False))
    events = [
        {**event, "name": others.get(event["name"], event["name"])}
        if event.get("cat") == "kernel"
        else event
        for event in made.events
    ]
    return write(replace(made, events=events), tmp_path / "t.json")


def matches(pattern: str, name: str) -> bool:
    """Ask DuckDB, whose patterns the profiles are written in."""
    with duckdb.connect() as connection:
        rows = connection.execute("select regexp_matches(?, ?)", [name, pattern]).fetchall()
    return bool(rows[0][0])


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_pattern_matches_its_kernel_and_drops_numbers(name: str) -> None:
    pattern = kernel_pattern(name)
    assert matches(pattern, name)
    assert UNKNOWN[name] in pattern
    assert "128" not in pattern and "17" not in pattern


@pytest.mark.parametrize(("name", "relative"), RELATIVES)
def test_a_pattern_matches_what_differs_in_numbers(name: str, relative: str) -> None:
    assert matches(kernel_pattern(name), relative)


@pytest.mark.parametrize(("name", "stranger"), STRANGERS)
def test_a_pattern_leaves_other_kernels_alone(name: str, stranger: str) -> None:
    assert not matches(kernel_pattern(name), stranger)


def test_pasted_rules_load_and_win(tmp_path: Path) -> None:
    """What is printed is put into a profile as it is; only the category is chosen."""
    folder = tmp_path / "profiles"
    shutil.copytree(data_folder("profiles"), folder)
    rules = pasted_rules(list(UNKNOWN))
    assert rules.isprintable() or rules.replace("\n", "").isprintable()
    path = folder / "kernels.toml"
    text = path.read_text("utf-8")
    head, tail = text.split("[[category]]", 1)
    chosen = rules.replace('name = "other"', 'name = "moe"')
    path.write_text(f"{head}{chosen}\n[[category]]{tail}", "utf-8")
    profile = load_profiles(folder)["kernels"]
    found = tomllib.loads(rules)["category"]
    assert [rule.pattern for rule in profile.categories[: len(found)]] == [
        rule["pattern"] for rule in found
    ]
    for name in UNKNOWN:
        first = next(rule for rule in profile.categories if matches(rule.pattern, name))
        assert first.name == "moe"
    assert {name for rule in found for name in rule["examples"]} == set(UNKNOWN)


def test_categories_add_up_of_a_trace_that_cannot_be_split(run: Run, trace: Path) -> None:
    assert run("passes", trace).exit_code == 5
    done = run("categories", trace, "--format", "json")
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    events = json.loads(trace.read_text())["traceEvents"]
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert sum(row["n_activities"] for row in rows) == len(work)
    assert sum(row["sum_dur_ms"] for row in rows) == pytest.approx(
        sum(event["dur"] for event in work) / 1e3
    )
    assert sum(row["share_pct"] for row in rows) == pytest.approx(100)
    assert [row["sum_dur_ms"] for row in rows] == sorted(
        (row["sum_dur_ms"] for row in rows), reverse=True
    )
    other = next(row for row in rows if row["category"] == "other")
    names = Counter(e["name"] for e in work if e["name"] in UNKNOWN)
    assert other["n_activities"] == names.total()
    assert other["n_names"] == len(names)


def test_unclassified_kernels_come_longest_first_with_rules(run: Run, trace: Path) -> None:
    rows = json.loads(run("categories", trace, "--unclassified", "--format", "json").stdout)
    times: dict[str, float] = defaultdict(float)
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"] in UNKNOWN:
            times[event["name"]] += event["dur"] / 1e3
    assert [row["name"] for row in rows] == sorted(times, key=lambda name: -times[name])
    assert [row["sum_dur_ms"] for row in rows] == pytest.approx(sorted(times.values())[::-1])
    for row in rows:
        (rule,) = tomllib.loads(row["rule"])["category"]
        assert rule["examples"] == [row["name"]]
    text = run("categories", trace, "--unclassified").stdout
    assert text.replace("\n", "").isprintable()
    table, _, rules = text.partition("\n\n[[category]]")
    assert max(map(len, table.splitlines())) <= WIDTH
    assert len(tomllib.loads(f"[[category]]{rules}")["category"]) <= len(times)
    markdown = run("categories", trace, "--unclassified", "--format", "markdown").stdout
    (fenced,) = re.findall(r"```toml\n(.*)```", markdown, re.DOTALL)
    assert tomllib.loads(fenced) == tomllib.loads(f"[[category]]{rules}")
    listed = run("categories", trace, "--unclassified", "--format", "csv").stdout
    assert len(list(csv.DictReader(io.StringIO(listed)))) == len(times)


def test_a_pass_alone(run: Run) -> None:
    folder = Path(__file__).resolve().parents[1] / "fixtures" / "demo"
    options = ("--config", folder / "config.json", "--format", "json")
    demo = folder / "gpt-oss-TP-0.trace.json.gz"
    one, all_of_them = (
        json.loads(run("categories", demo, *chosen, *options).stdout)
        for chosen in (("--pass", 3), ())
    )
    in_one, in_all = (
        next(row["n_activities"] for row in rows if row["category"] == "attention")
        for rows in (one, all_of_them)
    )
    assert in_one * 8 == in_all
    missing = run("categories", demo, "--pass", 99, *options)
    assert missing.exit_code == 1
    assert "pass 99" in missing.stderr
    assert json.loads(run("categories", demo, "--unclassified", *options).stdout) == []
    text = run("categories", demo, "--unclassified", *options[:2]).stdout
    assert "has a category" in text


def test_a_trace_without_device_work_says_so(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "f", "ts": 1, "dur": 1}]}')
    assert run("categories", path).exit_code == 4
