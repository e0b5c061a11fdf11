"""A trace against another one, by the command and from files: itself in disguise, and two GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import trace_edits as edits
from attention_lab import BASES, LATER, Lab, Row
from command_line import answer, command

from trace_sql.attention_metrics import error_metrics, metrics_text
from trace_sql.comparison_findings import comparison_text
from trace_sql.comparison_metrics import comparison_metrics
from trace_sql.database import Database
from trace_sql.errors import ExitCode
from trace_sql.findings_check import check
from trace_sql.findings_metrics import read_metrics
from trace_sql.findings_reader import NO_DATA
from trace_sql.store import Store

# A trace and changed copies of it.


@pytest.fixture
def compare(lab: Lab, tmp_path: Path) -> Callable[..., Row]:
    """Compare two files by the command, of a base's model; what it writes must be valid."""

    def compared(base: str, one: Path, two: Path) -> Row:
        config = BASES[base][1]
        model = ("--config", lab.shared(config)) if config else ()
        files = ("--metrics", tmp_path / "metrics.json")
        written = ("--findings", tmp_path / "findings.md", *files)
        words = ("attention", one, "--baseline", two, *model, *written, "--format", "json")
        shown: Row = answer(command(lab.store.folder, *words))
        words = ("attention", "--validate", tmp_path / "findings.md", *files)
        checked = command(lab.store.folder, *words)
        assert checked.exit_code == ExitCode.OK, checked.stdout
        return shown

    return compared


@pytest.mark.parametrize("base", BASES)
def test_the_same_trace_at_another_time_is_at_parity(
    lab: Lab, compare: Callable[..., Row], base: str
) -> None:
    shown = compare(base, lab.path(base), lab.copy(base, edits.shifted(LATER)))
    assert len(shown["matches"]) == len(lab.base(base)["ops"])
    for row in shown["matches"]:
        assert row["time_pct"] == row["efficiency_pct"] == pytest.approx(100)
        assert row["difference_ms"] == pytest.approx(0, abs=1e-9)
        assert row["note"] is None
    assert [row["part"] for row in shown["totals"]] == ["in both"]
    assert shown["findings"] == []


@pytest.mark.parametrize("base", ["decode", "made"])
def test_the_same_work_done_twice_is_compared_by_call_and_by_pass(
    lab: Lab, compare: Callable[..., Row], base: str
) -> None:
    shown = compare(base, lab.path(base), lab.copy(base, edits.twice))
    for row in shown["matches"]:
        calls, other_calls = map(int, row["calls"].split("/"))
        assert other_calls == 2 * calls
        assert row["other_sum_ms"] == pytest.approx(2 * row["sum_ms"])
        assert row["time_pct"] == pytest.approx(100)
        assert row["pass_ms"] == pytest.approx(row["other_pass_ms"])
        assert row["difference_ms"] == pytest.approx(0, abs=1e-9)
    if base == "decode":
        assert all(row["pass_ms"] for row in shown["matches"])
    assert shown["findings"] == []


@pytest.mark.parametrize("base", ["decode", "made"])
def test_times_of_the_other_trace_scale_the_ratio(
    lab: Lab, compare: Callable[..., Row], base: str
) -> None:
    slow, path = lab.copy(base, edits.slower(2)), lab.path(base)
    there, back = compare(base, path, slow), compare(base, slow, path)
    assert there["findings"] == []
    walls = {row["scope"]: row["wall_ms"] for row in lab.base(base)["shares"]}
    for row, swapped in zip(there["matches"], back["matches"], strict=True):
        assert row["operation"] == swapped["operation"]
        assert row["time_pct"] == pytest.approx(200)
        assert swapped["time_pct"] == pytest.approx(50)
        for one in (row, swapped):
            product = 100 * one["floor_ratio"] * one["quality_ratio"]
            assert one["time_pct"] == pytest.approx(product)
            assert one["floor_ratio"] == pytest.approx(1)
            assert one["efficiency_pct"] == pytest.approx(max(one["time_pct"], one["roofline_pct"]))
    # The slow trace would gain half of its time, but for groups that are worth less than 0.5 %.
    gain = sum(50 * row["sum_ms"] / walls["trace"] for row in there["matches"])
    found = sum(row["impact_score_high"] for row in back["findings"])
    assert gain - 1 < found < gain + 0.1


def test_no_trace_is_worth_more_than_the_roofline(lab: Lab, compare: Callable[..., Row]) -> None:
    shown = compare("made", lab.path("made"), lab.copy("made", edits.slower(Decimal("0.001"))))
    for row in shown["matches"]:
        assert row["time_pct"] == pytest.approx(0.1)
        assert row["efficiency_pct"] == row["roofline_pct"] > row["time_pct"]
        assert "beyond the roofline" in row["note"]


def test_what_one_trace_has_alone_is_listed_and_counts_nowhere(
    lab: Lab, compare: Callable[..., Row]
) -> None:
    def wider(args: Row) -> None:
        args["Input Dims"] = [[*dims[:3], 128] if len(dims) == 4 else dims
                              for dims in args["Input Dims"]]  # fmt: skip

    name = "flash_attn::_flash_attn_forward"
    other = lab.copy("made", edits.called(name, *[wider] * 3))
    shown = compare("made", lab.path("made"), other)
    alone = [row for row in shown["matches"] if "not in trace" in (row["note"] or "")]
    assert [(row["operation"], row["note"], row["calls"]) for row in alone] == [
        (name, "not in trace 2", "3/-"),
        (name, "not in trace 1", "-/3"),
    ]
    for row in alone:
        assert row["time_pct"] is row["efficiency_pct"] is row["difference_ms"] is None
    known = sum(op["sum_us"] for op in lab.base("made")["ops"]) / 1000
    both, one, two = shown["totals"]
    assert (both["part"], one["part"], two["part"]) == (
        *("in both", "only in trace 1", "only in trace 2"),
    )
    assert both["sum_ms"] == both["other_sum_ms"] == pytest.approx(known - 0.18)
    assert both["time_pct"] == pytest.approx(100)
    assert (one["sum_ms"], one["other_sum_ms"], one["time_pct"]) == (
        pytest.approx(0.18),
        None,
        None,
    )
    assert (two["sum_ms"], two["other_sum_ms"], two["time_pct"]) == (
        None,
        pytest.approx(0.18),
        None,
    )
    assert shown["findings"] == []


# The same model on two GPUs, and the file that is written of it.


@pytest.fixture(scope="module")
def bert(shared: Callable[[str], Path], trace_store: Store) -> tuple[str, str]:
    """The same model on two GPUs: ids of the traces of MI300X and of H100."""
    names = ("traces/hf_bert_small_mi300x.json.gz", "traces/hf_bert_small_h100.json.gz")
    one, two = (trace_store.ingest(shared(name)).trace_id for name in names)
    return one, two


def real(store: Store, one: str, two: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the matches and the metrics of two traces of the store."""
    traces = {name: store.settings(name) for name in (one, two)}
    with Database(store, traces, pairs=[(one, two)]) as db:
        content = comparison_metrics(db, one, two)
        return db.query("from attention_matches order by match_no").dicts(), content


def test_the_same_model_on_two_gpus(bert: tuple[str, str], trace_store: Store) -> None:
    (row,), content = real(trace_store, *bert)
    # 37.408 of 113.656 us; datasheet bandwidths of 5.3 and 3.35 TB/s.
    assert row["efficiency_pct"] == pytest.approx(32.91, abs=0.02)
    assert row["floor_ratio"] == pytest.approx(5.3 / 3.35)
    assert row["quality_ratio"] == pytest.approx(row["time_ratio"] * 3.35 / 5.3)
    (operation,) = content["operations"]
    assert operation["efficiency"]["efficiency_percent"] == round(row["efficiency_pct"], 2)
    assert operation["difference_ms"] == pytest.approx(-0.076)
    (finding,) = content["category_findings"]
    assert (finding["eff_bucket"], finding["bound_type"]) == ("all", "memory")
    # Swapped, trace 1 is the faster one: nothing to gain.
    (swapped,), other = real(trace_store, *reversed(bert))
    assert swapped["time_ratio"] == pytest.approx(1 / row["time_ratio"])
    assert other["category_findings"] == []


def test_a_real_trace_against_itself(bert: tuple[str, str], trace_store: Store) -> None:
    (row,), content = real(trace_store, bert[0], bert[0])
    assert row["efficiency_pct"] == 100
    assert content["category_findings"] == []
    assert check(comparison_text(content), parsed(content)).faults == ()


def test_what_is_written_of_it_is_valid_and_nothing_can_be_changed(
    bert: tuple[str, str], trace_store: Store
) -> None:
    _, content = real(trace_store, *bert)
    metrics = parsed(content)
    text = comparison_text(content)
    assert check(text, metrics).faults == ()
    lines = text.split("\n")
    start = lines.index("## Recommendations")
    for number, line in enumerate(lines):
        if number < start or not line:
            continue
        for new in ([], [line, line], *([changed] for changed in digits_changed(line))):
            broken = "\n".join([*lines[:number], *new, *lines[number + 1 :]])
            assert check(broken, metrics).faults, (line, new)


def parsed(content: dict[str, Any]) -> dict[str, Any]:
    return read_metrics(metrics_text(content), "metrics.json")


def digits_changed(line: str) -> Iterator[str]:
    """Yield a line with each of its digits changed; only of lines that hold numbers to keep."""
    if line.startswith(("<!--", "- ", "**Impact**")):
        checked = line
    elif line.startswith("| aten"):
        checked = "|".join(line.split("|")[:11])
    else:
        return
    for match in re.finditer(r"\d", checked):
        digit = (int(match[0]) + 1) % 10
        yield f"{line[: match.start()]}{digit}{line[match.end() :]}"


def test_without_attention_the_file_says_so() -> None:
    content = {"status": "NO_DATA", "trace": "a", "trace2": "b", "operations": []}
    assert check(comparison_text(content), None).faults == ()
    assert NO_DATA in comparison_text(content)
    failed = error_metrics("it broke", "comparative")
    assert check(comparison_text(failed), parsed(failed)).faults == ()
