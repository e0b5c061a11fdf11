"""Tables as text, JSON, CSV or Markdown: what goes to stdout.

Names in a trace are data. Control characters are shown as escapes in tables and Markdown, and
Markdown's own marks are escaped, so that no name can move the cursor or break a table.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

FORMATS = ("table", "json", "csv", "markdown")
WIDTH = 100
"""Columns of a terminal that a table must fit."""
_NARROWEST = 12


@dataclass(frozen=True)
class Column:
    """A column of a table: key in JSON and CSV, heading for people, decimals of a number.

    `wrap` marks text that may be folded to make the table fit.
    """

    key: str
    heading: str
    decimals: int | None = None
    wrap: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under columns; `key` names the table in JSON, `title` heads it for people."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]


def plain_table(key: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table whose headings are its keys, as ad-hoc SQL gives it."""
    return Table(key, "", tuple(Column(name, name, wrap=True) for name in names), rows)


def render(tables: Sequence[Table], output_format: str) -> str:
    """Render tables in one of FORMATS.

    JSON is a list of objects for one table, an object of such lists for several. CSV holds one
    table, the first.
    """
    if output_format == "json":
        content = {table.key: _objects(table) for table in tables}
        body: Any = content if len(tables) != 1 else content[tables[0].key]
        return json_text(body)
    if output_format == "csv":
        return _csv(tables[0])
    draw = _markdown if output_format == "markdown" else _text
    return "\n".join(draw(table) for table in tables)


def json_text(content: Any) -> str:
    """Return JSON for people and machines: indented, non-ASCII kept, a line break at the end."""
    return json.dumps(content, indent=2, ensure_ascii=False, default=_json_value) + "\n"


def clean(text: str) -> str:
    """Return text that is safe on a terminal: control and format characters as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _objects(table: Table) -> list[dict[str, Any]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def _json_value(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def _csv(table: Table) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(column.key for column in table.columns)
    for row in table.rows:
        writer.writerow("" if value is None else value for value in row)
    return buffer.getvalue()


def _cell(column: Column, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | Decimal) and not isinstance(value, bool):
        if not math.isfinite(value):
            return "-"
        return f"{value:.{column.decimals}f}" if column.decimals is not None else f"{value:g}"
    if isinstance(value, list | tuple):
        return ",".join(_cell(column, item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{clean(str(key))}={_cell(column, value[key])}" for key in value)
    return clean(str(value))


def _markdown(table: Table) -> str:
    def escaped(text: str) -> str:
        for mark in "\\`*|<>[]":
            text = text.replace(mark, "\\" + mark)
        # An underscore inside a word is no mark, and names are full of them.
        text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)
        return text.replace("&", "&amp;")

    numeric = [_is_numeric(table, index) for index in range(len(table.columns))]
    lines = [f"## {table.title}", ""] if table.title else []
    lines.append("| " + " | ".join(escaped(column.heading) for column in table.columns) + " |")
    lines.append("|" + "|".join("---:" if number else "---" for number in numeric) + "|")
    for row in table.rows:
        cells = (_cell(column, value) for column, value in zip(table.columns, row, strict=True))
        lines.append("| " + " | ".join(escaped(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _text(table: Table) -> str:
    cells = [
        [_cell(column, value) for column, value in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    widths = _widths(table, cells)
    numeric = [_is_numeric(table, index) for index in range(len(table.columns))]
    headings = [column.heading for column in table.columns]
    lines = [table.title] if table.title else []
    lines += _folded(headings, widths, numeric)
    lines.append("  ".join("-" * width for width in widths))
    for row in cells:
        lines += _folded(row, widths, numeric)
    return "\n".join(lines) + "\n"


def _folded(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """Return the lines of a row, each cell folded to its width."""
    folded = [
        [cell] if _width(cell) <= width else textwrap.wrap(cell, width) or [""]
        for cell, width in zip(row, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, folded), default=0)):
        parts = [
            _padded(cell[number] if number < len(cell) else "", width, right)
            for cell, width, right in zip(folded, widths, numeric, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def _widths(table: Table, cells: Sequence[Sequence[str]]) -> list[int]:
    widths = [
        max([_width(column.heading), *(_width(row[index]) for row in cells)])
        for index, column in enumerate(table.columns)
    ]
    elastic = [index for index, column in enumerate(table.columns) if column.wrap]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widest = max(elastic, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _is_numeric(table: Table, index: int) -> bool:
    values = [row[index] for row in table.rows if row[index] is not None]
    return all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * max(width - _width(text), 0)
    return blanks + text if right else text + blanks
