"""Reports: every command's output on the demo as golden files, and the rule of steady state.

`pytest --update-golden tests/test_reports.py` writes the golden files anew; read their diff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql.cli import main
from trace_sql.flow import shapes
from trace_sql.views import load_views

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).parent / "golden"
TRACE = "fixtures/demo/gpt-oss-TP-0.trace.json.gz"
CONFIG = "fixtures/demo/config.json"
NAME = "gpt-oss-TP-0"
QUERY = (
    "select region, category, count(*) as n, sum(dur_ns) as sum_dur_ns from kernels"
    " where pass_no = 5 group by all order by all"
)
COMMANDS = {
    "traces": ["traces"],
    "passes": ["passes", NAME],
    "layers": ["layers", NAME],
    "layers-of-prefill": ["layers", NAME, "--phase", "prefill"],
    "kernels": ["kernels", NAME, "--pass", "5", "--layer", "3"],
    "kernels-compared": ["kernels", NAME, "--pass", "5", "--layer", "3", "--compare-layer", "0"],
    "perfetto": ["perfetto", NAME, "--pass", "5", "--layers", "2,3"],
    "anchors": ["anchors", NAME],
    "model": ["model", CONFIG],
    "report": ["report", NAME],
    "sql": ["sql", NAME, QUERY],
}
FORMATS = {"table": "txt", "json": "json", "csv": "csv", "markdown": "md"}
CASES = [
    *((name, "table") for name in COMMANDS if name != "report" and "kernels" not in name),
    *((name, form) for name in ("kernels", "kernels-compared") for form in ("text", "json")),
    ("kernels", "compute-flow"),
    *((name, "json") for name in ("passes", "layers", "perfetto", "anchors")),
    *((name, "csv") for name in ("passes", "layers", "kernels")),
    *((name, "markdown") for name in ("passes", "layers", "kernels")),
    ("report", None),
]


def golden_file(name: str, form: str | None) -> Path:
    if form is None:
        return GOLDEN / f"{name}.md"
    if form in FORMATS:
        return GOLDEN / f"{name}.{FORMATS[form]}"
    return GOLDEN / (f"{name}.txt" if form == "text" else f"{name}.{form}.txt")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """What a command prints when it is run at the root of the checkout."""
    store = tmp_path_factory.mktemp("store")

    def run(*words: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)
            result = CliRunner().invoke(main, ["--store", str(store), *words])
        assert result.exit_code == 0, result.stderr
        # The report names the file; where the checkout lies is no part of the answer.
        return result.stdout.replace(f"{ROOT}/", "")

    run("ingest", TRACE, "--config", CONFIG, "--run", "demo", "--tag", "tp=2")
    return run


@pytest.mark.parametrize(("name", "form"), CASES, ids=lambda value: str(value))
def test_golden(
    output: Callable[..., str], request: pytest.FixtureRequest, name: str, form: str | None
) -> None:
    text = output(*COMMANDS[name], *(["--format", form] if form else []))
    path = golden_file(name, form)
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    assert path.exists(), "make it with --update-golden"
    assert text.encode() == path.read_bytes()


def test_the_golden_files_are_those_of_the_commands() -> None:
    assert sorted(GOLDEN.iterdir()) == sorted(golden_file(name, form) for name, form in CASES)


def test_golden_files_name_no_machine_and_no_time_of_day() -> None:
    for path in GOLDEN.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root|Users)/", text), path.name
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text), path.name


def test_the_report_has_the_nine_points() -> None:
    text = (GOLDEN / "report.md").read_text(encoding="utf-8")
    sections = re.split(r"^## \d\. ", text, flags=re.MULTILINE)
    titles = [section.splitlines()[0] for section in sections[1:]]
    assert titles == [
        "Trace",
        "Model",
        "Forward passes",
        "Chosen pass",
        "Layers of pass 5",
        "Layer clusters",
        "Compute flow",
        "Perfetto time ranges",
        "Summary",
    ]
    metadata, model, passes, chosen, layers, clusters, flow, ranges, summary = sections[1:]
    for words in (TRACE, CONFIG, "NVIDIA B200", "TP=2", "world size | 2"):
        assert words in metadata
    for words in ("Layers | 12", "Hidden size | 2880", "q 64, kv 8, dim 64", "experts 128, topk 4"):
        assert words in model
    head = "| Fwd# | Start(s) | End(s) | Duration(ms) | Avg Layer(ms) | First Layer(ms) |"
    assert head in passes and passes.count("\n| ") == 1 + 8
    assert chosen.splitlines()[2].startswith("Pass 5: first steady decode pass")
    assert "| L | c_r | Type | Wall(ms) | SumDur(ms) |" in layers
    assert "| AR# | K# |" in layers and layers.count("\n| ") == 1 + 12
    assert "| Cluster | # | Avg Wall(ms) | Avg Sum(ms) |" in clusters
    head = "| # | Half | Category | Simplified Name | dur(us) | % | ts_rel(ms) | Input Dims |"
    assert flow.count(head) == 2, "a layer of each of two types"
    assert ranges.count("\n| ") == 1 + 8 + 1 + 12
    line = summary.splitlines()[2]
    assert re.match(r"Bottleneck: FULL\+MOE, .*; likely next target: MoE, ", line)


def test_the_report_tells_what_it_does_not_know(output: Callable[..., str]) -> None:
    text = output("report", NAME, "--layer", "0")
    assert text.count("| Half |") == 1
    assert "### Layer 0," in text


def test_the_markdown_of_a_command_is_that_of_the_report() -> None:
    """A number must not depend on where it is shown."""
    report = (GOLDEN / "report.md").read_text(encoding="utf-8")
    for name in ("passes", "layers"):
        text = (GOLDEN / f"{name}.md").read_text(encoding="utf-8")
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert rows and all(row in report for row in rows)


# The rule of steady state.

Series = list[tuple[str, str | None, int | None]]
"""Of each pass status, phase and the time of layer 0."""
LATENCY = st.integers(min_value=0, max_value=60)
PASS = st.tuples(
    st.sampled_from(["complete", "complete", "complete", "cut_start", "refused"]),
    st.sampled_from(["decode", "prefill", None]),
    st.one_of(st.none(), LATENCY),
    st.sampled_from([1, 20, 1_000_003]),
)


def steady_by_hand(passes: Series) -> dict[str, int]:
    """Return the first steady pass by phase: two changes in a row of at most a twentieth."""
    found: dict[str, int] = {}
    for phase in ("decode", "prefill", "unknown"):
        series = [
            (number, layer_ns)
            for number, (status, own, layer_ns) in enumerate(passes)
            if status == "complete" and (own or "unknown") == phase and layer_ns is not None
        ]
        for before, between, (number, now) in zip(series, series[1:], series[2:], strict=False):
            pairs = ((before[1], between[1]), (between[1], now))
            if all(old > 0 and 20 * abs(new - old) <= old for old, new in pairs):
                found[phase] = number
                break
    return found


@cache
def steady_views() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute(
        "create table passes (trace_id varchar, pass_no bigint, status varchar, phase varchar,"
        " first_layer_ns bigint, kind varchar default 'target')"
    )
    for name in ("pass_changes", "steady_passes"):
        connection.execute(f"create view {name} as {load_views()[name].text}")
    return connection


def steady_by_sql(passes: Series) -> dict[str, int]:
    connection = steady_views()
    connection.execute("truncate passes")
    # The second trace, in reverse, must not change what is found in the first.
    rows = [("a", n, *row) for n, row in enumerate(passes)]
    rows += [("b", n, *row) for n, row in enumerate(reversed(passes))]
    if rows:
        marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
        columns = "trace_id, pass_no, status, phase, first_layer_ns"
        values = [value for row in rows for value in row]
        connection.execute(f"insert into passes ({columns}) values {marks}", values)
    found = connection.execute("select phase, pass_no from steady_passes where trace_id = 'a'")
    return {str(phase): int(number) for phase, number in found.fetchall()}


@given(st.lists(PASS, max_size=9))
def test_steady_state_against_a_plain_reading(
    passes: list[tuple[str, str | None, int | None, int]],
) -> None:
    series = [
        (status, phase, None if ns is None else ns * scale) for status, phase, ns, scale in passes
    ]
    assert steady_by_sql(series) == steady_by_hand(series)


@settings(max_examples=30)
@given(st.lists(st.integers(min_value=1, max_value=2**40), min_size=3, max_size=6))
def test_steady_state_knows_no_absolute_threshold(layers: list[int]) -> None:
    series: Series = [("complete", "decode", ns) for ns in layers]
    slower: Series = [("complete", "decode", ns * 1000) for ns in layers]
    assert steady_by_sql(series) == steady_by_sql(slower) == steady_by_hand(series)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([100, 105, 110], {"decode": 2}),  # exactly 5 % counts
        ([100, 106, 106], {}),
        ([100, 106, 106, 106], {"decode": 3}),
        ([100, 95, 100], {}),  # back up is 5.3 %
        ([100, 100], {}),
        ([100, None, 100, 100], {"decode": 3}),
        ([0, 0, 0], {}),
    ],
)
def test_steady_state_by_hand(layers: list[int | None], expected: dict[str, int]) -> None:
    series: Series = [("complete", "decode", ns) for ns in layers]
    assert steady_by_sql(series) == expected == steady_by_hand(series)


def test_the_chosen_pass_is_the_steady_one(output: Callable[..., str]) -> None:
    passes = json.loads(output("passes", NAME, "--format", "json"))
    first = [row["first_layer_ms"] for row in passes if row["phase"] == "decode"]
    changes = [abs(new - old) / old for old, new in zip(first, first[1:], strict=False)]
    steady = next(i for i in range(1, len(changes)) if max(changes[i - 1 : i + 1]) <= 0.05)
    number = [row["pass_no"] for row in passes if row["phase"] == "decode"][steady + 1]
    (noted,) = (row["pass_no"] for row in passes if "steady from here" in row["notes"])
    assert noted == number
    assert f"Layers of pass {number}" in output("layers", NAME)


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (None, None),
        ("[[888,3072],[888,128],[]]", "888x3072, 888x128"),
        ("[[],[]]", ""),
        ("[[[2,3],[4]],[5]]", "(2x3, 4), 5"),
        ('["2,3"]', "2,3"),
        ("2,3", "2,3"),
        ("7", "7"),
    ],
)
def test_shapes_as_people_write_them(recorded: str | None, shown: str | None) -> None:
    assert shapes(recorded) == shown
