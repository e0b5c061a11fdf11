"""Figures of a findings file against its metrics: each one changed is seen, in every sentence."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from findings_made import markdown, metrics, operation
from test_attention_findings import CAUSES, metrics_of

from trace_sql.attention_findings import findings_text
from trace_sql.attention_metrics import metrics_text
from trace_sql.findings_check import Validation, check
from trace_sql.findings_metrics import read_metrics


def checked(text: str, content: dict[str, Any]) -> Validation:
    return check(text, read_metrics(metrics_text(content), "metrics.json"))


@pytest.mark.parametrize("cause", ["launch", "bandwidth", "unmodeled"])
def test_no_figure_can_be_another(cause: str) -> None:
    content = metrics_of([CAUSES[cause]], extra_us=30.0)
    text = findings_text(content)
    assert checked(text, content).faults == ()
    unseen = []
    for match in re.finditer(r"\d+", text):
        other = str(int(match[0]) + 1).zfill(len(match[0]))
        changed = text[: match.start()] + other + text[match.end() :]
        if not checked(changed, content).faults:
            unseen.append(text[match.start() - 20 : match.end() + 20])
    assert unseen == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.00 \u00b5s", "3.00 ms"),
        ("1 call of", "7 call of"),
        ("memory-bound", "compute-bound"),
        ("compute-bound", "memory-bound"),
    ],
)
def test_units_and_counts_are_figures(old: str, new: str) -> None:
    content = metrics_of([CAUSES["launch"]], extra_us=30.0)
    text = findings_text(content)
    if old in text:
        assert checked(text.replace(old, new), content).faults


def test_words_of_paged_attention_are_those_of_the_metrics() -> None:
    content = metrics_of([CAUSES["bandwidth"]])
    text = findings_text(content)
    assert "| decode_heavy | MHA" in text
    for old, new in (("| decode_heavy |", "| prefill_heavy |"), ("| MHA", "| GQA")):
        assert {one.rule for one in checked(text.replace(old, new), content).faults} == {
            "table cells"
        }


def test_sentences_of_another_writer_are_their_own() -> None:
    content = metrics_of([CAUSES["launch"]], extra_us=30.0)
    text = findings_text(content)
    mine = re.sub(r"(?m)^\*\*Insight\*\*: .*$", "**Insight**: 7 of 9 waves are empty.", text)
    assert mine != text
    assert checked(mine, content).faults == ()


def test_metrics_of_another_writer_are_checked_as_far_as_they_go() -> None:
    content = metrics([operation("aten::_flash", 40.0, 25.0, "memory")])
    validation = checked(markdown(content), content)
    assert validation.faults == ()
    assert "figures in sentences" in validation.unchecked[0]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("operations", 0, "perf_params", "flops"), 1e15),
        (("operations", 0, "efficiency", "resolved_peak_maf"), 10.0),
        (("impact_estimates", 0, "bound_type"), "memory"),
        (("impact_estimates", 0, "library"), "Other"),
        (("impact_estimates", 0, "efficiency_pct"), 24.9),
        (("category_findings", 0, "members", 0, "impact_score"), 1.0),
        (("category_findings", 0, "members", 0, "library"), "Other"),
        (("category_findings", 0, "members", 0, "efficiency_pct"), 24.9),
    ],
)
def test_metrics_agree_with_themselves(place: tuple[Any, ...], value: Any) -> None:
    content = metrics_of([CAUSES["compute"]], extra_us=30.0)
    text = findings_text(content)
    assert checked(text, content).faults == ()
    changed = json.loads(metrics_text(content))
    part = changed
    for key in place[:-1]:
        part = part[key]
    assert part[place[-1]] != value
    part[place[-1]] = value
    assert any(one.rule.startswith("metrics ") for one in checked(text, changed).faults)
