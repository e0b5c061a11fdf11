"""Impact markers of a findings file: their form, their numbers, and what they wrap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from trace_sql.findings_reader import (
    CARD_LABELS,
    DETAIL_LABELS,
    KINDS,
    Body,
    Card,
    Detail,
    Document,
    Fault,
    Marker,
    labelled,
)

GATE = Decimal("0.5")
"""Least impact of a finding, in percent of the wall time of the trace."""

_NUMBER = re.compile(r"\d+(\.\d+)?")
_IMPACT = re.compile(r"\*\*Impact\*\*: impact_score: (\S+)")
_BOUNDS = (
    re.compile(r"- Low end impact_score: (\S+)"),
    re.compile(r"- High end impact_score: (\S+)"),
)
_NULL_IMPACT = "not quantifiable from trace data"


def marker_faults(document: Document) -> Iterator[Fault]:
    """Yield what is wrong with the markers, each for itself and as part of its card or block."""
    yield from _markers(document)
    yield from _pairs(document)


def _markers(document: Document) -> Iterator[Fault]:
    """Yield markers whose kind, attributes or numbers are not as they must be."""
    for marker in document.markers:
        if marker.kind is None:
            yield Fault(marker.line, "marker", "no kind=; write kind=p_item or detail_estimate")
            continue
        if marker.kind not in KINDS:
            yield Fault(
                marker.line, "marker", f"kind={marker.kind}: the kinds are {', '.join(KINDS)}"
            )
            continue
        yield from _attributes(marker)


def _attributes(marker: Marker) -> Iterator[Fault]:
    names = KINDS[marker.kind or ""]
    for name in names:
        if name not in marker.values:
            yield Fault(marker.line, "marker", f"no {name}=; a {marker.kind} marker needs it")
    for name in marker.values.keys() - {*names, "category"}:
        yield Fault(marker.line, "marker", f"{name}= is no part of a {marker.kind} marker")
    given = [marker.values[name] for name in names if name in marker.values]
    nulls = [value == "null" for value in given]
    if any(nulls):
        if not all(nulls):
            yield Fault(marker.line, "marker", "null beside numbers; write all or none as null")
        text = "".join(line.text for line in marker.wrapped or ())
        if marker.wrapped is not None and _NULL_IMPACT not in text.lower():
            yield Fault(marker.line, "marker", f"null needs the words {_NULL_IMPACT!r}")
        return
    for name, value in marker.values.items():
        if name in names and not _NUMBER.fullmatch(value):
            yield Fault(marker.line, "marker", f"{name}={value} is no number; copy the metrics'")
            return
    numbers = [Decimal(value) for value in given]
    if numbers != sorted(numbers):
        yield Fault(marker.line, "numbers", f"{' <= '.join(names)} does not hold")
    middle = marker.values.get("mid")
    if middle is not None and Decimal(middle) < GATE:
        yield Fault(marker.line, "gate", f"mid={middle} is below {GATE}: no finding; remove it")


def _pairs(document: Document) -> Iterator[Fault]:
    """Yield cards and blocks whose markers are missing, elsewhere, or say other numbers."""
    owned: set[int] = set()
    items: list[Marker | None] = []
    for card in document.cards:
        marker, faults = _own(document, card.line, card.body, "p_item")
        items.append(marker)
        owned |= {marker.line} if marker else set()
        yield from faults
        if marker is not None:
            yield from _impact_line(card, marker)
    for index, block in enumerate(document.blocks):
        marker, faults = _own(document, block.line, block.body, "detail_estimate")
        owned |= {marker.line} if marker else set()
        yield from faults
        if marker is None:
            continue
        yield from _estimate(block, marker)
        item = items[index] if index < len(items) else None
        for name in ("low", "high") if item is not None else ():
            assert item is not None
            if not same_number(item.values.get(name), marker.values.get(name)):
                yield Fault(
                    marker.line,
                    "numbers",
                    f"{name}={marker.values.get(name)} but {item.values.get(name)} on the card"
                    f" (line {item.line}); copy both from the metrics",
                )
    for marker in document.markers:
        if marker.line not in owned and marker.kind in ("p_item", "detail_estimate"):
            yield Fault(marker.line, "marker", "a marker of no card or block; remove it")
    middles = [item.values.get("mid", "") for item in items if item is not None]
    if all(map(_NUMBER.fullmatch, middles)):
        scores = [Decimal(middle) for middle in middles]
        for before, score, card in zip(scores, scores[1:], document.cards[1:], strict=False):
            if score > before:
                yield Fault(card.line, "ranks", f"{score} ranks behind {before}; sort by impact")


def _own(document: Document, line: int, body: Body, kind: str) -> tuple[Marker | None, list[Fault]]:
    """Return the one marker of `kind` in `body`."""
    numbers = {line.number for line in body}
    own = [marker for marker in document.markers if marker.line in numbers]
    right = [marker for marker in own if marker.kind == kind]
    faults = [
        Fault(marker.line, "marker", f"kind={marker.kind} here; only {kind} belongs there")
        for marker in own
        if marker.kind != kind and marker.kind in KINDS
    ]
    if not right:
        return None, [*faults, Fault(line, "marker", f"no {kind} marker; add it")]
    faults += [Fault(marker.line, "marker", f"a second {kind}; keep one") for marker in right[1:]]
    return right[0], faults


def _impact_line(card: Card, marker: Marker) -> Iterator[Fault]:
    inside = [line for line in marker.wrapped or () if line.text.strip()]
    if len(inside) != 1 or not inside[0].text.startswith(CARD_LABELS[2]):
        yield Fault(marker.line, "impact line", "wrap the **Impact** line alone in the marker")
        return
    if marker.values.get("mid") == "null":
        return
    match = _IMPACT.fullmatch(inside[0].text)
    if match is None:
        yield Fault(inside[0].number, "impact line", "write `**Impact**: impact_score: <mid>`")
    elif not same_number(match[1], marker.values.get("mid")):
        yield Fault(
            inside[0].number,
            "numbers",
            f"impact_score {match[1]} but mid={marker.values.get('mid')}; write the same",
        )


def _estimate(block: Detail, marker: Marker) -> Iterator[Fault]:
    places = labelled(block.body, DETAIL_LABELS)[DETAIL_LABELS[-1]]
    if places and marker.line < places[0][1][0].number:
        yield Fault(marker.line, "marker", "stands before **Impact estimate:**; move it behind")
    inside = [line for line in marker.wrapped or () if line.text.strip()]
    if marker.values.get("low") == "null":
        return
    if len(inside) != 2:
        yield Fault(marker.line, "impact estimate", "wrap two bullets, low end and high end")
        return
    for line, pattern, name in zip(inside, _BOUNDS, ("low", "high"), strict=True):
        match = pattern.fullmatch(line.text)
        if match is None:
            words = f"`- {name.capitalize()} end impact_score: <{name}>`"
            yield Fault(line.number, "impact estimate", f"write {words}")
        elif not same_number(match[1], marker.values.get(name)):
            yield Fault(
                line.number,
                "numbers",
                f"{match[1]} but {name}={marker.values.get(name)} in the marker; write the same",
            )


def same_number(one: str | None, other: str | None) -> bool:
    """Whether two texts are the same number, or the same text."""
    if one is None or other is None or one == other:
        return True
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    return Decimal(one) == Decimal(other)
