"""Each rule of a findings file: a file that keeps it, and one that breaks it alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from findings_made import markdown, metrics, operation

from trace_sql.errors import BadInputError, ExitCode
from trace_sql.findings_check import Validation, check, fault_table, validate
from trace_sql.findings_metrics import read_metrics
from trace_sql.findings_reader import NO_DATA

OPERATIONS = [
    operation("aten::_flash", 40.0, 25.0, "memory"),
    operation("aten::_short", 20.5, 12.5, "memory"),
    operation("aten::_long", 30.123, 55.5, "compute", library="AOTriton"),
    operation("mylib::attend", 16.0, None, None, library="Unknown"),
]
METRICS = metrics(OPERATIONS)
LOW, MID, HIGH = (
    METRICS["category_findings"][0][f"impact_score{end}"] for end in ("_low", "", "_high")
)
ITEM = f"low={LOW} mid={MID} high={HIGH}"
TEXT = markdown(METRICS).replace(" (Unknown)", "")
PAIRED = metrics(
    [
        operation(
            "aten::_flash", 40.0, 50.0, "memory", t2_time_ms=20.0, difference_ms=-20.0,
            count_trace2=12,
        )
    ],
    "comparative",
)  # fmt: skip
EMPTY = "## Recommendations\n\n## Detailed Analysis\n"


def checked(text: str, content: dict[str, Any] | None = METRICS) -> Validation:
    return check(text, None if content is None else read_metrics(json.dumps(content), "m.json"))


def rules(text: str, content: dict[str, Any] | None = METRICS) -> set[str]:
    return {fault.rule for fault in checked(text, content).faults}


def broken(old: str, new: str, text: str = TEXT) -> str:
    assert old in text
    return text.replace(old, new, 1)


# Files that are right.


def test_a_right_file_has_no_fault() -> None:
    assert checked(TEXT).faults == ()
    assert checked(TEXT).n_findings == 3
    assert "figures in sentences" in checked(TEXT).unchecked[0]


def test_without_metrics_it_says_what_was_not_looked_at() -> None:
    validation = checked(TEXT, None)
    assert validation.faults == ()
    assert "--metrics" in validation.unchecked[0]


def test_scope_is_that_of_the_metrics_or_of_the_columns() -> None:
    text = markdown(PAIRED)
    assert checked(text, PAIRED).faults == ()
    assert checked(text, PAIRED).scope == "comparative"
    assert checked(text, None).scope == "comparative"
    assert checked(text, None).faults == ()
    assert "table columns" in rules(text, {**PAIRED, "comparison_scope": "standalone"})


def test_no_finding_is_two_empty_sections() -> None:
    content = metrics([operation("aten::_flash", 0.5, 60.0, "memory")])
    assert content["category_findings"] == []
    assert rules(EMPTY, content) == set()
    assert rules(f"{NO_DATA[:12]} is fine\n\n{EMPTY}", content) == set()
    assert rules(TEXT, content) >= {"findings"}
    assert rules(broken("\n\n##", "\n\nNothing here.\n\n##", EMPTY), content) == {"sections"}


@pytest.mark.parametrize("tail", ["", f"\n\n{EMPTY}"])
def test_no_operation_is_a_sentence(tail: str) -> None:
    content = metrics([])
    assert rules(f"{NO_DATA}{tail}", content) == set()
    assert rules(f"{NO_DATA}{tail}", None) == set()
    assert rules(f"{NO_DATA}{tail}", METRICS) == {"status"}
    assert rules(f"{NO_DATA}\n\n{TEXT}", METRICS) == set()
    assert rules(EMPTY, content) == {"status"}


@pytest.mark.parametrize(
    "line", ["Status: ERROR", "**Status**: ERROR (it broke)", "# Status: ERROR"]
)
def test_an_error_has_no_findings(line: str) -> None:
    content = {"category": "sdpa_fwd", "status": "ERROR", "error": "no file"}
    assert rules(line, content) == set()
    assert rules(line, None) == set()
    assert rules(f"{line}\n\n{EMPTY}", content) == set()
    assert rules(f"{line}\n\n{TEXT}", content) == {"status"}
    assert rules(f"{line}\n\n{TEXT}", None) == {"status"}
    assert rules(line, METRICS) == {"status"}
    assert rules(TEXT, content) == {"status"}


# One thing wrong at a time.

CARD = "### P1: Attention leaves bandwidth unused (CK)"
BEGIN = "<!-- impact-begin kind=p_item low="
IMPACT = f"**Impact**: impact_score: {MID}\n"
END = "<!-- impact-end -->\n"
BULLET = f"- Low end impact_score: {LOW}\n"
ESTIMATE = "<!-- impact-begin kind=detail_estimate low="
CANDIDATE = "<!-- reasoning-candidate tier=compute rank=1 -->"
LAST = "<!-- reasoning-candidate tier=compute rank=3 -->"
FORM = [
    ("## Recommendations", "### Recommendations", "sections"),
    ("## Recommendations", "Recommendations", "sections"),
    ("## Recommendations", "## Recommendations for you", "sections"),
    ("## Recommendations", "## Recommendations\n\n## Recommendations", "sections"),
    ("## Recommendations", "<!--\n## Recommendations\n-->", "sections"),
    ("## Recommendations", "```\n## Recommendations\n```", "sections"),
    ("## Recommendations", "## Recommendations\n\nSome words.", "sections"),
    ("## Detailed Analysis", "", "sections"),
    ("## Detailed Analysis", "## Detailed Analysis\n\n## More", "sections"),
    (CARD, "### Attention leaves bandwidth unused", "card heading"),
    (CARD, "### P1: ", "card heading"),
    (CARD, "#### P1: Attention leaves bandwidth unused", "sections"),
    (CARD, CARD.replace("P1", "P2"), "ranks"),
    (CARD, CARD.replace("P1", "P0"), "ranks"),
    ("**Insight**", "Insight", "card labels"),
    ("**Action**", "**action**", "card labels"),
    ("**Impact**", "**impact**", "card labels"),
    ("**Insight**: the kernels reach a third of the bandwidth.", "**Insight**:", "card labels"),
    ("**Insight**", "**Action**: one.\n**Insight**", "card labels"),
    (CANDIDATE, "", "pairs"),
    (CANDIDATE, CANDIDATE.replace("compute", "system"), "detail comment"),
    (CANDIDATE, "<!-- reasoning-candidate rank=1 tier=compute -->", "detail comment"),
    (CANDIDATE, CANDIDATE.replace("1", "4"), "ranks"),
    ("#### P1: Attention", "", "detail heading"),
    ("#### P1: Attention", "#### P2: Attention", "detail heading"),
    ("**Identification:**", "**Identification**:", "detail labels"),
    ("**Identification:** flash attention, 24 calls.", "**Identification:**", "detail labels"),
    ("**Data:**\n", "**Data:** as follows\n", "detail labels"),
    ("**Reasoning for Slowdown:**", "**Reasoning:**", "detail labels"),
    ("**Resolution:**", "**Impact estimate:**\n\n**Resolution:**", "detail labels"),
    ("**Impact estimate:**\n", "", "detail labels"),
    ("**Data:**\n\n|", "**Data:**\n\nSee below.\n\n|", "table"),
    ("| Operation | Args |", "| Args | Operation |", "table columns"),
    ("| Operation | Args |", "| Operation | Args (T1) |", "table columns"),
    (" | Bound |", " |", "table columns"),
    (" | 24 | 98.50", " | 98.50", "table"),
    (" | 24 | 98.50", " | 24.0 | 98.50", "table cells"),
    (" | 24 | 98.50", " | | 98.50", "table cells"),
    ("25.00% of 5.3 TB/s", "25% of 5.3 TB/s", "table cells"),
    ("25.00% of 5.3 TB/s", "25.00% of 1307.4 TFLOPS", "table cells"),
    ("memory-bound", "memory", "table cells"),
    (BEGIN, BEGIN.replace("kind=p_item ", ""), "marker"),
    (BEGIN, BEGIN.replace("p_item", "p_items"), "marker"),
    (BEGIN, BEGIN.replace("p_item", "top_ops"), "marker"),
    (BEGIN, BEGIN.replace("low", "lo"), "marker"),
    (BEGIN, BEGIN.replace("low", "extra=1 low"), "marker"),
    (BEGIN, BEGIN.replace("low", "low=1 low"), "marker"),
    (BEGIN, BEGIN.replace(" kind", "  kind"), "marker"),
    (BEGIN, f"{BEGIN}-", "marker"),
    (BEGIN, f"{BEGIN}about", "marker"),
    (ITEM, ITEM.replace(f"{LOW}", "null"), "marker"),
    (ITEM, "low=null mid=null high=null", "marker"),
    (ITEM, f"low={HIGH} mid={MID} high={LOW}", "numbers"),
    (ITEM, "low=0.1 mid=0.2 high=0.3", "gate"),
    (IMPACT, IMPACT.replace(f"{MID}", "9.9"), "numbers"),
    (IMPACT, IMPACT.replace("score:", "score ="), "impact line"),
    (IMPACT, f"{IMPACT}More words.\n", "impact line"),
    (f"{IMPACT}{END}", IMPACT, "marker"),
    (f"{IMPACT}{END}", f"{END}{IMPACT}", "impact line"),
    (f"{ESTIMATE}{LOW}", f"{ESTIMATE}1.0", "numbers"),
    (BULLET, BULLET.replace(f"{LOW}", "1.1"), "numbers"),
    (BULLET, BULLET.replace("impact_score", ""), "impact estimate"),
    (BULLET, "", "impact estimate"),
    ("read the cache", "let the CUDA kernels read the cache", "vendor words"),
    ("read the cache", "use cuDNN to read the cache", "vendor words"),
    ("read the cache", "fuse the SDPA kernel and read the cache", "fuse advice"),
    ("read the cache", "the attention kernel should be fused to read the cache", "fuse advice"),
    ("the sequences are short", "the occupancy is low", "observability"),
    ("the sequences are short", "the KV-cache hit rate is 40 %", "observability"),
    ("the sequences are short", "the kernel uses a tile size of 128", "observability"),
    ("the sequences are short", "the sequences are sh\u200bort", "characters"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rule"), FORM)
def test_a_fault_of_form_is_found_without_metrics(old: str, new: str, rule: str) -> None:
    assert rule in rules(broken(old, new), None)


NUMBERS = [
    ("| aten::_flash |", "| aten::_flesh |", "table cells"),
    ("| aten::_flash |", "| aten::_long |", "table"),
    ("| (4,12,197,64) bf16<br>", "| (4,12,198,64) bf16<br>", "table cells"),
    ("| Encoder > Layer |", "| Decoder > Layer |", "table cells"),
    ("| Encoder > Layer |", "| \u2014 |", "table cells"),
    ("fill_kernel", "copy_kernel", "table cells"),
    ("| 40.000 |", "| 40.001 |", "table cells"),
    ("| 20.00 |", "| 21.00 |", "table cells"),
    ("| 24 |", "| 25 |", "table cells"),
    ("| 98.50 |", "| 98.60 |", "table cells"),
    ("25.00% of 5.3 TB/s", "25.01% of 5.3 TB/s", "table cells"),
    ("25.00% of 5.3 TB/s", "25.00% of 8.0 TB/s", "table cells"),
    ("25.00% of 5.3 TB/s | memory-bound", "25.00% of 5.3 TB/s | \u2014", "table cells"),
    (CARD, CARD.replace(" (CK)", ""), "card heading"),
    (CARD, CARD.replace("CK", "AITER"), "card heading"),
    ("> Estimated from its share of the time (`percent_of_total`).", "", "heuristic"),
    ("<!-- impact-end -->\n", "<!-- impact-end -->\n> Estimated from its share.\n", "heuristic"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rule"), NUMBERS)
def test_what_the_metrics_do_not_say_is_found(old: str, new: str, rule: str) -> None:
    assert rule in rules(broken(old, new))
    assert rule not in rules(broken(old, new), None) or rule == "table cells"


def test_all_numbers_of_a_card_changed_alike_are_found() -> None:
    assert rules(TEXT.replace(f"{LOW}", f"{LOW + 0.1:.2f}"), None) == set()
    assert rules(TEXT.replace(f"{LOW}", f"{LOW + 0.1:.2f}")) == {"numbers"}


def test_a_row_twice_and_a_card_too_few_are_found() -> None:
    row = next(line for line in TEXT.splitlines() if line.startswith("| aten::_flash"))
    assert rules(broken(row, f"{row}\n{row}")) == {"table"}
    assert rules(broken(f"{row}\n", "")) == {"table"}
    cards = TEXT.split("### P3")[0] + "## Detailed Analysis" + TEXT.split("## Detailed Analysis")[1]
    assert "findings" in rules(cards.split(LAST)[0])


def test_sorted_by_impact() -> None:
    swapped = TEXT.replace("P1:", "PX:").replace("P2:", "P1:").replace("PX:", "P2:")
    assert "ranks" in rules(swapped, None)


@pytest.mark.parametrize(
    "sentence",
    [
        "Never fuse the SDPA kernel: it is fused already.",
        "Migrate to fused attention, which keeps the scores on the chip.",
        "Fuse the attention mask into one tensor.",
        "Flash tile size not visible \u2014 profile the kernel for tile-size tuning.",
        "Per-request KV-cache hit rate not visible from trace data.",
        "Whether occupancy is low a hardware counter would tell.",
        "Its name says a tile size of 128.",
        "`cuda kernels` is what the name of `CUDA kernel` says.",
    ],
)
def test_sentences_that_may_stand(sentence: str) -> None:
    assert rules(broken("the sequences are short.", sentence), None) == set()


# Metrics that contradict themselves.


def no_estimate(content: dict[str, Any]) -> None:
    del content["impact_estimates"][0]


def other_estimate(content: dict[str, Any]) -> None:
    content["impact_estimates"][0]["impact_score"] += 0.5


def other_method(content: dict[str, Any]) -> None:
    content["impact_estimates"][0]["estimate_method"] = "heuristic"


def invented(content: dict[str, Any]) -> None:
    content["impact_estimates"].append({**content["impact_estimates"][0], "operation": "x"})


def praised(content: dict[str, Any]) -> None:
    content["operations"][0]["efficiency"]["efficiency_percent"] = 125.0


def other_sum(content: dict[str, Any]) -> None:
    content["category_findings"][0]["impact_score"] += 0.02


def dropped(content: dict[str, Any]) -> None:
    del content["category_findings"][-1]


def below_gate(content: dict[str, Any]) -> None:
    small = operation("aten::_small", 0.5, 20.0, "compute")
    more = metrics([*OPERATIONS, small])
    lowest = {**content["category_findings"][0], "bound_type": "compute", "library": "CK"}
    estimate = more["impact_estimates"][-1]
    scores = {key: estimate[key] for key in estimate if key.startswith("impact")}
    lowest |= {**scores, "members": [estimate], "member_count": 1, "rank": 4}
    content.update({**more, "category_findings": [*content["category_findings"], lowest]})


def other_bucket(content: dict[str, Any]) -> None:
    content["category_findings"][0]["eff_bucket"] = "30-60"


def other_rank(content: dict[str, Any]) -> None:
    content["category_findings"][0]["rank"] = 2


def unsorted(content: dict[str, Any]) -> None:
    content["category_findings"].reverse()


def other_count(content: dict[str, Any]) -> None:
    content["operation_count"] = 7


def other_share(content: dict[str, Any]) -> None:
    content["operations"][0]["percent_of_total"] = 40.0


def other_members(content: dict[str, Any]) -> None:
    content["category_findings"][0]["members"][0]["operation"] = "aten::_long"


def no_baseline(content: dict[str, Any]) -> None:
    del content["baseline_ms"]


@pytest.mark.parametrize(
    "change",
    [no_estimate, other_estimate, other_method, invented, praised, other_sum, dropped, below_gate]
    + [other_bucket, other_rank, unsorted, other_count, other_share, other_members, no_baseline],
    ids=lambda change: change.__name__,
)
def test_metrics_follow_from_their_operations(change: Callable[[dict[str, Any]], None]) -> None:
    content = copy.deepcopy(METRICS)
    change(content)
    assert any(rule.startswith("metrics ") for rule in rules(TEXT, content))


@pytest.mark.parametrize("value", [None, [], {}, "x", 3, [None], [[1]], {"a": 1}])
@pytest.mark.parametrize("key", sorted(METRICS))
def test_odd_metrics_are_faults_not_errors(key: str, value: Any) -> None:
    checked(TEXT, {**METRICS, key: value})


@pytest.mark.parametrize("value", [None, [], {}, "x", "\n|", 10**40, 1e300, True])
def test_odd_fields_are_faults_not_errors(value: Any) -> None:
    for part in ("operations", "impact_estimates", "category_findings"):
        for key in METRICS[part][0]:
            content = copy.deepcopy(METRICS)
            content[part][0][key] = value
            checked(TEXT, content)


# Files.


def test_faults_stand_in_order_and_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "findings.md"
    path.write_text(broken("**Action**", "**Do**", broken(BEGIN, f"{BEGIN}x")), encoding="utf-8")
    validation = validate(path, None)
    table = fault_table(validation)
    lines = [row[0] for row in table.rows]
    assert len(lines) >= 2
    assert lines == sorted(lines)
    written = path.read_text(encoding="utf-8").splitlines()
    assert any("impact-begin" in written[line - 1] for line in lines)


def test_what_is_no_text_or_no_json_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "findings.md", tmp_path / "metrics.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="byte 0") as caught:
        validate(path, None)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    path.write_text(TEXT, encoding="utf-8")
    for text in ("{", "[1]", "[" * 100_000, ""):
        other.write_text(text, encoding="utf-8")
        with pytest.raises(BadInputError, match=r"metrics\.json"):
            validate(path, other)
    other.write_text(json.dumps(METRICS), encoding="utf-8")
    assert validate(path, other).faults == ()
