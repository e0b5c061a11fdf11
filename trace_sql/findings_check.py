"""Whether a findings file is what it must be: every rule of its form, and every number of it.

Rules that need only the file stand here; `findings_metrics` compares it with the metrics that it
was written from, and derives these again. Each fault says what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trace_sql.errors import BadInputError
from trace_sql.findings_figures import figure_faults
from trace_sql.findings_markers import marker_faults
from trace_sql.findings_metrics import metrics_faults, read_metrics
from trace_sql.findings_prose import prose_faults
from trace_sql.findings_reader import (
    CARD_LABELS,
    DETAIL_LABELS,
    NO_DATA,
    Body,
    Card,
    Detail,
    Document,
    Fault,
    labelled,
    read_findings,
)
from trace_sql.findings_tables import scope_of, table_faults
from trace_sql.output import Column, Table
from trace_sql.safe_text import clean, odd_characters

TIER = "compute"
_ERROR = re.compile(r"[*_>#\s-]*Status[*_]*:[*_]*\s+[*_`]*ERROR\b.*")


@dataclass(frozen=True)
class Validation:
    """What is wrong with a findings file, and what could not be looked at."""

    scope: str
    n_findings: int
    faults: tuple[Fault, ...]
    unchecked: tuple[str, ...]


def validate(findings: Path, metrics: Path | None) -> Validation:
    """Check a file, against the metrics that it was written from where they are given.

    Raises BadInputError for a file that is no text, or metrics that are no JSON object.
    """
    text = _text(findings)
    if metrics is None:
        return check(text, None)
    return check(text, read_metrics(_text(metrics), str(metrics)))


def check(text: str, metrics: dict[str, Any] | None) -> Validation:
    """Check the text of a findings file; see `validate`."""
    document = read_findings(text)
    scope = scope_of(document, metrics)
    faults = [*_characters(document)]
    state = _state(document)
    if state != "findings":
        faults += _without_findings(document, state)
        # The sections may be there, empty; a file of one sentence has none.
        faults += [fault for fault in document.faults if fault.line]
    else:
        faults += document.faults
        faults += _sequence(document)
        faults += _sections_empty(document)
        for card in document.cards:
            faults += _card(card)
        for block in document.blocks:
            faults += _block(block)
            faults += table_faults(block, scope)
        faults += marker_faults(document)
        faults += prose_faults(document)
    unchecked: tuple[str, ...] = ()
    if metrics is not None:
        faults += metrics_faults(document, state, scope, metrics)
        if state == "findings" and not faults:
            try:
                faults += figure_faults(document, metrics)
            except ValueError:
                unchecked = ("figures in sentences: these metrics are not all that we write from",)
    elif state == "findings":
        unchecked = (
            "the number of findings, their members, sums and gates, and what tables and sentences"
            " say of operations: give --metrics FILE",
        )
    return Validation(scope, len(document.cards), tuple(sorted(set(faults))), unchecked)


def fault_table(validation: Validation) -> Table:
    """Return the faults as a table: a line each, in the order of the file."""
    columns = (Column("line", "Line"), Column("rule", "Rule"), Column("fault", "Fault", wrap=True))
    rows = [(fault.line or None, fault.rule, clean(fault.text)) for fault in validation.faults]
    return Table("faults", "", columns, rows)


def verdict_table(validation: Validation) -> Table:
    """Return what people see of a file without a fault."""
    columns = (Column("verdict", "Verdict"), Column("n", "Findings"), Column("scope", "Scope"))
    return Table("verdict", "", columns, [("valid", validation.n_findings, validation.scope)])


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read ({error.strerror}); name a file") from None
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"{path}: byte {error.start} is no UTF-8; write the file as UTF-8 text"
        ) from None


def _state(document: Document) -> str:
    """Return error, no data or findings: which kind of file this is."""
    if any(_ERROR.fullmatch(line.text) for line in document.lines):
        return "error"
    if any(NO_DATA in line.text for line in document.free) and not document.cards:
        return "no data"
    return "findings"


def _without_findings(document: Document, state: str) -> Iterator[Fault]:
    """Yield what a file of an error, or without operations, must not have."""
    why = "Status: ERROR" if state == "error" else f"{NO_DATA!r}"
    lines = (
        [part.line for part in document.cards]
        + [part.line for part in document.blocks]
        + [part.line for part in document.markers]
    )
    for line in sorted(lines):
        yield Fault(line, "status", f"a finding in a file that says {why}; remove one of them")
    for text in (*document.recommendations, *document.details):
        if text.text.strip():
            yield Fault(text.number, "status", f"text in a section although the file says {why}")
            break


def _characters(document: Document) -> Iterator[Fault]:
    for line in document.lines:
        if odd := odd_characters(line.text) - {"\t"}:
            codes = ", ".join(f"U+{ord(char):04X}" for char in sorted(odd))
            yield Fault(line.number, "characters", f"holds {codes}, which hide text; escape them")


def _sequence(document: Document) -> Iterator[Fault]:
    """Yield cards and blocks that are not numbered 1, 2, 3, or not in pairs."""
    cards = [(card.line, card.rank) for card in document.cards]
    blocks = [(block.line, block.rank) for block in document.blocks]
    for what, parts in (("card", cards), ("detail block", blocks)):
        for expected, (line, rank) in enumerate(parts, 1):
            if rank != expected:
                yield Fault(
                    line,
                    "ranks",
                    f"{what} {expected} has rank {rank}; number them 1, 2, 3, ... in order",
                )
    if len(cards) != len(blocks):
        yield Fault(
            [*cards, *blocks][-1][0],
            "pairs",
            f"{len(cards)} cards but {len(blocks)} detail blocks; write one block for each card",
        )


def _sections_empty(document: Document) -> Iterator[Fault]:
    """Yield text that stands in a section before its first card or block."""
    for section, parts, what in (
        (document.recommendations, document.cards, "card"),
        (document.details, document.blocks, "detail block"),
    ):
        first = parts[0].line if parts else None
        for line in section:
            if first is not None and line.number >= first:
                break
            known = "reasoning-candidate" in line.text or line.text.startswith("### ")
            if line.text.strip() and not known:
                where = f"before the first {what}" if first else "in a section without findings"
                yield Fault(
                    line.number, "sections", f"text {where}; move it above ## Recommendations"
                )
                break


def _card(card: Card) -> Iterator[Fault]:
    if not card.title.strip():
        yield Fault(card.line, "card heading", "the card has no title; write one behind P<rank>:")
    yield from _label_order(card.line, card.body, CARD_LABELS)
    for label in CARD_LABELS[:2]:
        yield from _empty_label(card.body, CARD_LABELS, label)
    for line in card.body:
        if line.text.startswith("#"):
            yield Fault(line.number, "card", "a heading inside of a card; write its text as prose")


def _block(block: Detail) -> Iterator[Fault]:
    if block.tier != TIER:
        yield Fault(block.line, "detail comment", f"tier={block.tier}: write tier={TIER}")
    texts = [line for line in block.body if line.text.strip()]
    heading = re.fullmatch(r"#### (.*\S.*)", texts[0].text) if texts else None
    if heading is None:
        yield Fault(block.line, "detail heading", "no `#### <title>` follows; write one")
    elif (named := re.search(r"\bP(\d+):", heading[1])) and int(named[1]) != block.rank:
        yield Fault(
            texts[0].number,
            "detail heading",
            f"says P{named[1]} in the block of rank {block.rank}; write the same rank",
        )
    for line in texts[1:]:
        if line.text.startswith("#"):
            yield Fault(line.number, "detail heading", "a second heading in the block; keep one")
    yield from _label_order(block.line, block.body, DETAIL_LABELS)
    for label in ("**Identification:**", "**Reasoning for Slowdown:**", "**Resolution:**"):
        yield from _empty_label(block.body, DETAIL_LABELS, label)
    for label in ("**Data:**", "**Impact estimate:**"):
        for _, body in labelled(block.body, DETAIL_LABELS)[label]:
            if body[0].text:
                yield Fault(body[0].number, "detail labels", f"{label} stands alone on its line")


def _label_order(line: int, body: Body, labels: tuple[str, ...]) -> Iterator[Fault]:
    found = labelled(body, labels)
    rule = "card labels" if labels == CARD_LABELS else "detail labels"
    for label, places in found.items():
        if not places:
            yield Fault(line, rule, f"no line starts with {label}; add it")
        for _, again in places[1:]:
            yield Fault(again[0].number, rule, f"{label} stands twice; keep one")
    order = [places[0][0] for places in found.values() if places]
    if order != sorted(order):
        yield Fault(line, rule, f"wrong order; write {', '.join(labels)}")


def _empty_label(body: Body, labels: tuple[str, ...], label: str) -> Iterator[Fault]:
    for _, lines in labelled(body, labels)[label]:
        words = [line.text for line in lines if not line.text.startswith("<!--")]
        if not re.search(r"\w", "".join(words)):
            rule = "card labels" if labels == CARD_LABELS else "detail labels"
            yield Fault(lines[0].number, rule, f"nothing is said behind {label}")
