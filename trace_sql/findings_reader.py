"""A findings file as what it says: sections, cards, detail blocks, markers and tables, by line.

Nothing is judged here but what cannot be read at all; `findings_check` holds the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

NO_DATA = "No SDPA operations found in trace"
"""What a file says that has no operation to judge."""
RECOMMENDATIONS = "## Recommendations"
DETAILS = "## Detailed Analysis"
CARD_LABELS = ("**Insight**", "**Action**", "**Impact**")
DETAIL_LABELS = (
    "**Identification:**",
    "**Data:**",
    "**Reasoning for Slowdown:**",
    "**Resolution:**",
    "**Impact estimate:**",
)
KINDS = {
    "p_item": ("low", "mid", "high"),
    "detail_estimate": ("low", "high"),
    "top_ops": (),
}
"""Kinds of impact markers, with the numbers that each must carry."""

_CARD = re.compile(r"### .*?\bP(\d{1,9}):\s*(.*)")
_CANDIDATE = re.compile(r"<!-- reasoning-candidate tier=(\S+) rank=(\d{1,9}) -->")
_BEGIN = re.compile(r"<!--\s*impact-begin\b(.*?)-->")
_END = re.compile(r"<!--\s*impact-end\s*-->")
_EXACT_BEGIN = re.compile(r"<!-- impact-begin( \w+=[^\s=]+)* -->")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_NAMES = ("|", "# ")
"""What begins a line that shows names of a trace, whatever words they have."""
_UNESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True, order=True)
class Fault:
    """A rule that a file breaks: where (1-based line, 0: nowhere), which, and what to do."""

    line: int
    rule: str
    text: str


@dataclass(frozen=True)
class Line:
    """A line with its 1-based number."""

    number: int
    text: str


Body = tuple[Line, ...]


@dataclass(frozen=True)
class Marker:
    """An impact marker: what it says, and the lines that it wraps."""

    line: int
    kind: str | None
    values: dict[str, str]
    wrapped: Body | None
    """None without an end."""


@dataclass(frozen=True)
class Card:
    """A recommendation: heading and lines."""

    line: int
    rank: int
    title: str
    body: Body


@dataclass(frozen=True)
class Detail:
    """A block of the detailed analysis; `body` begins behind its comment."""

    line: int
    tier: str
    rank: int
    body: Body


@dataclass(frozen=True)
class DataTable:
    """A pipe table: headings, and rows with their lines; cells as they stand in the file."""

    line: int
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Document:
    """All lines of a file, and its parts; a section that is missing has no lines."""

    lines: Body
    free: Body
    recommendations: Body
    details: Body
    cards: tuple[Card, ...]
    blocks: tuple[Detail, ...]
    markers: tuple[Marker, ...]
    faults: tuple[Fault, ...]


def read_findings(text: str) -> Document:
    """Return what a findings file holds; code blocks and hidden comments are no part of it."""
    lines = _visible(text)
    faults: list[Fault] = []
    starts = [_section(lines, header, faults) for header in (RECOMMENDATIONS, DETAILS)]
    first, second = starts
    if first is not None and second is not None and first > second:
        faults.append(
            Fault(first + 1, "sections", f"{RECOMMENDATIONS} stands behind {DETAILS}; put it first")
        )
        first, second = None, None
    recommendations = _between(lines, first, second)
    details = _between(lines, second, None)
    for line in (*recommendations, *details):
        if re.match(r"##? ", line.text):
            faults.append(
                Fault(
                    line.number,
                    "sections",
                    f"{line.text!r} is no section that may follow; move it before"
                    f" {RECOMMENDATIONS}",
                )
            )
    markers = _markers(lines, faults)
    cards = _cards(recommendations, faults)
    return Document(
        lines=lines,
        free=lines[: first if first is not None else len(lines)],
        recommendations=recommendations,
        details=details,
        cards=cards,
        blocks=_blocks(details, faults),
        markers=markers,
        faults=tuple(faults),
    )


def labelled(body: Body, labels: Sequence[str]) -> dict[str, list[tuple[int, Body]]]:
    """Return for each label where it stands in `body`, with the lines up to the next label.

    The first of these lines is what follows the label on its own line.
    """
    found: dict[str, list[tuple[int, Body]]] = {label: [] for label in labels}
    places = [
        (index, label)
        for index, line in enumerate(body)
        for label in labels
        if line.text.startswith(label)
    ]
    for position, (index, label) in enumerate(places):
        end = places[position + 1][0] if position + 1 < len(places) else len(body)
        own = Line(body[index].number, body[index].text[len(label) :])
        found[label].append((index, (own, *body[index + 1 : end])))
    return found


def data_table(body: Body) -> DataTable | None:
    """Return the table that `body` begins with, blank lines aside; None where there is none."""
    start = next((index for index, line in enumerate(body) if line.text.strip()), len(body))
    lines = []
    for line in body[start:]:
        if not line.text.lstrip().startswith("|"):
            break
        lines.append(line)
    if len(lines) < 2 or not all(re.fullmatch(r":?-+:?", cell) for cell in cells(lines[1].text)):
        return None
    rows = tuple((line.number, cells(line.text)) for line in lines[2:])
    return DataTable(lines[0].number, cells(lines[0].text), rows)


def cells(row: str) -> tuple[str, ...]:
    """Return the cells of a row of a pipe table, without the blanks around them."""
    inner = row.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", inner))


def plain(cell: str) -> str:
    """Return the text that a cell shows: without Markdown's escapes and entities."""
    text = _UNESCAPED.sub(r"\1", cell)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&#124;", "|"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text


def _visible(text: str) -> Body:
    """Return the lines; those of code blocks, and of comments over several lines, are blank."""
    lines = []
    fence = None
    hidden = False
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        shown = line.rstrip()
        mark = _FENCE.match(line)
        if hidden:
            hidden, shown = "-->" not in line, ""
        elif fence is not None:
            if mark and mark[1] == fence and not line.strip().strip(fence[0]):
                fence = None
            shown = ""
        elif mark:
            fence, shown = mark[1], ""
        elif line.rfind("<!--") > line.rfind("-->"):
            hidden, shown = True, ""
        lines.append(Line(number, shown))
    return tuple(lines)


def _section(lines: Body, header: str, faults: list[Fault]) -> int | None:
    """Return the index of the line behind a section's header."""
    places = [line.number for line in lines if line.text == header]
    if not places:
        faults.append(Fault(0, "sections", f"no line is {header!r}; write it as a line of its own"))
        return None
    for again in places[1:]:
        faults.append(Fault(again, "sections", f"{header!r} stands twice; keep one"))
    return places[0]


def _between(lines: Body, start: int | None, behind: int | None) -> Body:
    if start is None:
        return ()
    return lines[start : behind - 1 if behind is not None else len(lines)]


def _cards(section: Body, faults: list[Fault]) -> tuple[Card, ...]:
    places = [index for index, line in enumerate(section) if line.text.startswith("### ")]
    cards = []
    for index, end in zip(places, [*places, len(section)][1:], strict=True):
        line = section[index]
        if match := _CARD.fullmatch(line.text):
            cards.append(Card(line.number, int(match[1]), match[2], section[index + 1 : end]))
        else:
            faults.append(
                Fault(
                    line.number,
                    "card heading",
                    f"{line.text!r} is no card; write `### P<rank>: <title> (<library>)`",
                )
            )
    return tuple(cards)


def _blocks(section: Body, faults: list[Fault]) -> tuple[Detail, ...]:
    places = []
    for index, line in enumerate(section):
        if "reasoning-candidate" not in line.text or line.text.startswith(_NAMES):
            continue
        if match := _CANDIDATE.fullmatch(line.text):
            places.append((index, match))
        else:
            faults.append(
                Fault(
                    line.number,
                    "detail comment",
                    "write `<!-- reasoning-candidate tier=compute rank=<N> -->` on a line alone",
                )
            )
    ends = [*(index for index, _ in places), len(section)][1:]
    return tuple(
        Detail(section[index].number, match[1], int(match[2]), section[index + 1 : end])
        for (index, match), end in zip(places, ends, strict=True)
    )


def _markers(lines: Body, faults: list[Fault]) -> tuple[Marker, ...]:
    markers: list[Marker] = []
    opened: tuple[int, Line] | None = None

    def close(wrapped: Body | None) -> None:
        nonlocal opened
        if opened is not None:
            markers.append(_marker(opened[1], wrapped, faults))
            opened = None

    for index, line in enumerate(lines):
        if line.text.startswith(_NAMES):
            continue
        if "impact-begin" in line.text:
            if opened is not None:
                faults.append(
                    Fault(opened[1].number, "marker", "no impact-end before the next begin; add it")
                )
            close(None)
            opened = index, line
        elif "impact-end" in line.text:
            if not _END.fullmatch(line.text):
                faults.append(Fault(line.number, "marker", "write `<!-- impact-end -->` alone"))
            if opened is None:
                faults.append(Fault(line.number, "marker", "impact-end without a begin; drop it"))
            else:
                close(lines[opened[0] + 1 : index])
    if opened is not None:
        faults.append(Fault(opened[1].number, "marker", "no impact-end follows; add it"))
    close(None)
    return tuple(markers)


def _marker(line: Line, wrapped: Body | None, faults: list[Fault]) -> Marker:
    if not _EXACT_BEGIN.fullmatch(line.text):
        faults.append(
            Fault(
                line.number,
                "marker",
                "write `<!-- impact-begin kind=<kind> low=<n> ... -->` on a line alone, one blank"
                " between its parts",
            )
        )
    match = _BEGIN.search(line.text)
    pairs = re.findall(r"(\w+)=(\S+)", match[1] if match else "")
    values = dict(pairs)
    if len(values) < len(pairs):
        faults.append(Fault(line.number, "marker", "an attribute stands twice; keep one"))
    return Marker(line.number, values.pop("kind", None), values, wrapped)
