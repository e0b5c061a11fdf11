"""The figures in the sentences of a findings file against those that its metrics give.

What a sentence should say is written from the metrics again. A sentence of the file that differs
from one of these by its figures alone says a wrong one; other sentences are the writer's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from trace_sql.attention_findings import findings_text
from trace_sql.comparison_findings import comparison_text
from trace_sql.findings_reader import (
    Body,
    Card,
    Document,
    Fault,
    Line,
    data_table,
    read_findings,
)

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*(?:\s?(?:%|\u00b5s|ms|[KMG]?B|bytes)(?!\w))?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORDS = 3
"""Words that a sentence has at least; shorter ones are alike by chance."""
_FIRST_OWN = 10
"""Columns of a table before those that only our files have."""

Sentences = Mapping[str, list[str]]


def figure_faults(document: Document, metrics: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield sentences and own columns whose figures are not those of the metrics.

    Raises ValueError for metrics that do not have what sentences are written from.
    """
    expected = read_findings(_written(metrics))
    pairs = [(document.free, expected.free)]
    pairs += [(_card(a), _card(b)) for a, b in zip(document.cards, expected.cards, strict=False)]
    pairs += [(a.body, b.body) for a, b in zip(document.blocks, expected.blocks, strict=False)]
    for given, right in pairs:
        known = _sentences(right)
        for line, sentence in _parts(given):
            like = known.get(_mask(sentence))
            if like and sentence not in like:
                yield Fault(
                    line, "figures", f"{_short(sentence)!r}: the metrics give {_short(like[0])!r}"
                )


def _card(card: Card) -> Body:
    return (Line(card.line, card.title), *card.body)


def _written(metrics: Mapping[str, Any]) -> str:
    content = _plain(metrics)
    write = comparison_text if content.get("comparison_scope") == "comparative" else findings_text
    try:
        return write(content)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"metrics without {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _sentences(body: Body) -> Sentences:
    found: dict[str, list[str]] = {}
    for _, sentence in _parts(body):
        found.setdefault(_mask(sentence), []).append(sentence)
    return found


def _parts(body: Body) -> Iterator[tuple[int, str]]:
    """Yield headings, sentences of prose, and the cells of a table's further columns."""
    for line in body:
        text = line.text.strip()
        if not text.startswith(("|", "<!--")):
            for sentence in _SENTENCE.split(text):
                if len(re.findall(r"[^\W\d_]{2,}", sentence)) >= _WORDS:
                    yield line.number, sentence
    for index, line in enumerate(body):
        if line.text.startswith("**Data:**"):
            table = data_table(body[index + 1 :])
            for number, cells in table.rows if table else ():
                for cell in cells[_FIRST_OWN:]:
                    yield number, cell


def _mask(sentence: str) -> str:
    return _FIGURE.sub("#", sentence)


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 160 else sentence[:160] + "..."
