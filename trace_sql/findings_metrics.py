"""A findings file against the metrics that it was written from.

The metrics are one JSON object: `category`, `status`, `comparison_scope`, `operations`,
`impact_estimates`, `category_findings` and what else `attention_metrics` writes. Where forward and
backward stand in one file, each operation, estimate and finding names its own `category`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from trace_sql.errors import BadInputError
from trace_sql.findings_cells import cell_faults
from trace_sql.findings_reader import Card, Document, Fault, Marker, plain
from trace_sql.findings_sums import decimal, metric_faults, objects

_NO_LIBRARY = (None, "", "Unknown")


def read_metrics(text: str, name: str) -> dict[str, Any]:
    """Return the metrics in `text`, numbers as the digits say; BadInputError names the fault."""
    try:
        content = json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"{name}: no JSON ({error.msg} at line {error.lineno}); give the file that --metrics"
            " wrote"
        ) from None
    except (RecursionError, ValueError):
        raise BadInputError(f"{name}: no metrics; give the file that --metrics wrote") from None
    if not isinstance(content, dict):
        raise BadInputError(
            f"{name}: holds a {type(content).__name__}, not an object; give the file that"
            " --metrics wrote"
        )
    return content


def metrics_faults(
    document: Document, state: str, scope: str, metrics: dict[str, Any]
) -> Iterator[Fault]:
    """Yield where the file and its metrics, or the metrics themselves, contradict each other."""
    status = metrics.get("status")
    if (status == "ERROR") != (state == "error"):
        yield Fault(
            0,
            "status",
            f"the metrics have status {status}; "
            + (
                "remove Status: ERROR from the file"
                if state == "error"
                else "write Status: ERROR and no finding"
            ),
        )
        return
    if state == "error":
        return
    operations = objects(metrics, "operations")
    if state == "no data":
        if operations:
            yield Fault(
                0, "status", f"the file knows no operation, the metrics have {len(operations)}"
            )
        return
    if not operations:
        yield Fault(0, "status", "the metrics have no operation; say that none was found")
    yield from metric_faults(metrics, scope)
    findings = objects(metrics, "category_findings")
    if len(findings) != len(document.cards):
        line = document.cards[-1].line if document.cards else 0
        yield Fault(
            line,
            "findings",
            f"{len(document.cards)} cards but {len(findings)} findings in the metrics; write one"
            " card for each, and no other",
        )
    for card, finding in zip(document.cards, findings, strict=False):
        yield from _card_faults(document, card, finding)
    for block, finding in zip(document.blocks, findings, strict=False):
        numbers = {line.number for line in block.body}
        yield from _number_faults(document, numbers, finding, ("low", "high"))
        yield from cell_faults(block, finding, operations, scope)


def _card_faults(document: Document, card: Card, finding: dict[str, Any]) -> Iterator[Fault]:
    numbers = {line.number for line in card.body}
    yield from _number_faults(document, numbers, finding, ("low", "mid", "high"))
    library = finding.get("library")
    title = plain(card.title)
    if library not in _NO_LIBRARY and not title.endswith(f" ({library})"):
        yield Fault(card.line, "card heading", f"the heading must end in ({library})")
    if library in _NO_LIBRARY and title.lower().endswith(("(unknown)", "(none)", "(null)")):
        yield Fault(card.line, "card heading", "no library is known; end the heading without one")
    end = max((line.number for line in card.body if "impact-end" in line.text), default=card.line)
    quoted = " ".join(
        line.text for line in card.body if line.number > end and line.text.lstrip().startswith(">")
    ).lower()
    says_so = "estimate" in quoted and ("share" in quoted or "percent_of_total" in quoted)
    if finding.get("estimate_method") == "heuristic":
        if not says_so:
            yield Fault(
                card.line,
                "heuristic",
                "say in a blockquote behind the impact that it is estimated from the share of time",
            )
    elif says_so:
        yield Fault(
            card.line, "heuristic", "the impact is computed, not estimated; drop the blockquote"
        )


def _number_faults(
    document: Document, numbers: set[int], finding: dict[str, Any], names: tuple[str, ...]
) -> Iterator[Fault]:
    """Yield numbers of the markers within these lines that are not those of the finding."""
    for marker in document.markers:
        if marker.line in numbers and set(names) <= marker.values.keys():
            for name in names:
                yield from _number_fault(marker, name, finding)


def _number_fault(marker: Marker, name: str, finding: dict[str, Any]) -> Iterator[Fault]:
    key = "impact_score" if name == "mid" else f"impact_score_{name}"
    told = decimal(finding.get(key))
    text = marker.values[name]
    if told is None or decimal(text) != told:
        shown = "nothing" if told is None else f"{told}"
        yield Fault(
            marker.line, "numbers", f"{name}={text}, but the metrics say {shown} ({key}); copy it"
        )
