"""Tables as text, JSON, CSV or Markdown: what goes to stdout.

Names in a trace are data. Control characters come out as escapes in every format, Markdown's own
marks and links are escaped, and CSV text that a spreadsheet would run as a formula gets a quote
before it, so that no name can move a cursor, break a table or start a program. JSON gives back what
went in, character by character; tables for people end a text that no one would read to its end.
"""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, TypeVar

from trace_sql.safe_text import clean, escaped, odd_characters, readable

FORMATS = ("table", "json", "csv", "markdown")
WIDTH = 100
"""Columns of a terminal that a table must fit."""
_NARROWEST = 12
_BLOCK = 10_000
"""Rows that are padded at once: padded cells take several times the memory of a line."""
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What starts a formula in a spreadsheet, the wide forms in East Asian ones."""

_Made = TypeVar("_Made")


class Column(NamedTuple):
    """A column of a table: key in JSON and CSV, heading for people, decimals of a number.

    `wrap` marks text that may be folded to make the table fit. `part` marks numbers of which the
    smallest may be added to the last one, the rest, where a text table would be too wide.
    """

    key: str
    heading: str
    decimals: int | None = None
    wrap: bool = False
    part: bool = False


class Table(NamedTuple):
    """Rows under columns; `key` names the table in JSON, `title` heads it for people."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]


def plain_table(key: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table whose headings are its keys, as ad-hoc SQL gives it.

    A name that comes again gets a number, so that JSON loses no column.
    """
    columns: list[Column] = []
    for index, name in enumerate(names):
        again = list(names[:index]).count(name)
        unique = f"{name}_{again + 1}" if again else name
        text = any(not isinstance(row[index], int | float | Decimal) for row in rows)
        columns.append(Column(unique, unique, wrap=text))
    return Table(key, "", tuple(columns), rows)


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
    """Return JSON for people and machines: indented, printable non-ASCII kept, at full precision.

    NaN and infinities, which JSON cannot say, become null.
    """
    text = json.dumps(_json_value(content), indent=2, ensure_ascii=False, allow_nan=False)
    # Line breaks in it are its own: json escapes those of the content, as all C0 controls.
    odd = odd_characters(text) - {"\n"}
    return text.translate({ord(char): json.dumps(char)[1:-1] for char in odd}) + "\n"


def _objects(table: Table) -> list[dict[str, Any]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return str(value)


def _csv(table: Table) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_csv_text(column.key) for column in table.columns)
    for row in table.rows:
        writer.writerow(_csv_value(value) for value in row)
    return buffer.getvalue()


def _csv_value(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return value
    if isinstance(value, list | tuple | dict):
        return _csv_text(json.dumps(_json_value(value), ensure_ascii=False))
    return _csv_text(str(value))


def _csv_text(text: str) -> str:
    text = clean(text)
    if text.lstrip().startswith(_FORMULA):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text


def _cell(column: Column, value: Any) -> str:
    if value is None:
        return "-"
    if type(value) is int:
        return str(value)
    if type(value) is str:
        return readable(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            return "-"
        return f"{value:.{column.decimals}f}" if column.decimals is not None else f"{value:.12g}"
    if isinstance(value, list | tuple):
        return ",".join(_cell(column, item) for item in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{readable(str(k))}={_cell(column, value[k])}" for k in value) or "-"
    return readable(str(value))


def _markdown(table: Table) -> str:
    headings = [escaped(readable(column.heading)) for column in table.columns]
    lines = [f"## {escaped(readable(table.title))}", ""] if table.title else []
    lines.append("| " + " | ".join(headings) + " |")
    numeric = _numeric(table)
    lines.append("|" + "|".join("---:" if number else "---" for number in numeric) + "|")
    # Numbers have no marks of Markdown to look for.
    columns = [
        cells if number else _mapped(escaped, cells)
        for cells, number in zip(_columns(table), numeric, strict=True)
    ]
    lines += [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def _text(table: Table) -> str:
    title = _fold(readable(table.title), WIDTH) if table.title else []
    table, added = _fitting(table)
    columns = _columns(table)
    widths = _widths(table, columns)
    if _total(widths) > WIDTH:
        return "\n".join([*title, *_records(table, columns)]) + "\n"
    numeric = _numeric(table)
    headings = [readable(column.heading) for column in table.columns]
    lines = [*title, *_folded(headings, widths, numeric)]
    lines.append("  ".join("-" * width for width in widths))
    for begin in range(0, len(table.rows), _BLOCK):
        parts = (cells[begin : begin + _BLOCK] for cells in columns)
        for row in zip(*map(_folded_cells, parts, widths, numeric), strict=True):
            lines += _side_by_side(row, widths)
    if added:
        rest = next(column.heading for column in reversed(table.columns) if column.part)
        lines += _fold(f"{rest} includes {', '.join(added)}; --format json has each.", WIDTH)
    return "\n".join(lines) + "\n"


def _columns(table: Table) -> list[list[str]]:
    """Return the cells column by column: the values of one are mostly of one type."""
    values = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    return [_cells(*pair) for pair in zip(table.columns, values, strict=True)]


def _cells(column: Column, values: Sequence[Any]) -> list[str]:
    kinds = {type(value) for value in values}
    if kinds == {int}:
        return list(map(str, values))
    if kinds == {float} and column.decimals is not None and all(map(math.isfinite, values)):
        return [f"{value:.{column.decimals}f}" for value in values]
    if kinds == {str}:
        return _mapped(readable, values)
    return [_cell(column, value) for value in values]


def _mapped(function: Callable[[str], _Made], texts: Sequence[str]) -> list[_Made]:
    """Return what a function makes of each text; most come again in other rows."""
    known = {text: function(text) for text in set(texts)}
    return [known[text] for text in texts]


def _fitting(table: Table) -> tuple[Table, list[str]]:
    """Return the table with as many `part` columns as fit, and the headings added to the last."""
    added: list[str] = []
    while True:
        *parts, rest = [i for i, column in enumerate(table.columns) if column.part] or [-1]
        if not parts or _total(_widths(table, _columns(table))) <= WIDTH:
            return table, added
        least = min(parts, key=lambda index: sum(row[index] or 0 for row in table.rows))
        added.append(table.columns[least].heading)
        rows = []
        for row in table.rows:
            merged = [*row]
            merged[rest] = (row[rest] or 0) + (row[least] or 0)
            rows.append([*merged[:least], *merged[least + 1 :]])
        columns = (*table.columns[:least], *table.columns[least + 1 :])
        table = Table(table.key, table.title, columns, rows)


def _records(table: Table, columns: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table too wide to stand as one: a block a row, a line a column."""
    headings = [readable(column.heading) for column in table.columns]
    width = min(max(map(_width, headings)), WIDTH // 2)
    lines = []
    for number, row in enumerate(zip(*columns, strict=True), 1):
        lines.append(f"-- row {number}")
        for pair in zip(headings, row, strict=True):
            lines += _folded(pair, (width, WIDTH - width - 2), (False, False))
    return lines


def _folded(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """Return the lines of a row, each cell folded to its width."""
    return _side_by_side([*map(_lines, row, widths, numeric)], widths)


def _side_by_side(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of a row of cells, of which each has one line or more."""
    height = max(map(len, cells), default=0)
    if height == 1:
        return ["  ".join([cell[0] for cell in cells]).rstrip()]
    filled = [
        [*cell, *[" " * width] * (height - len(cell))]
        for cell, width in zip(cells, widths, strict=True)
    ]
    return ["  ".join(line).rstrip() for line in zip(*filled, strict=True)]


def _folded_cells(cells: Sequence[str], width: int, right: bool) -> list[tuple[str, ...]]:
    """Return the lines of each cell of a column, folded and padded to its width."""
    if max(map(len, cells)) <= width and "".join(cells).isascii():
        pad = str.rjust if right else str.ljust
        return [(pad(cell, width),) for cell in cells]
    return _mapped(lambda cell: _lines(cell, width, right), cells)


def _lines(text: str, width: int, right: bool) -> tuple[str, ...]:
    return tuple(_padded(line, width, right) for line in _fold(text, width))


def _fold(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width`, broken behind a blank or a mark in a name."""
    lines = []
    start = 0
    while len(text) - start > width or _width(text[start:]) > width:
        end = start + width
        while end > start + 1 and _width(text[start:end]) > width:
            end -= 1
        blank = text.rfind(" ", start, end + 1)
        mark = max(text.rfind(mark, start, end) for mark in "_:,<(+-/") + 1
        half = (start + end) // 2
        end = next((place for place in (blank, mark) if place > half), end)
        lines.append(text[start:end].rstrip())
        start = end + text[end : end + 1].count(" ")
    return [*lines, text[start:]]


def _widths(table: Table, columns: Sequence[Sequence[str]]) -> list[int]:
    widths = [
        _widest([readable(column.heading), *cells])
        for column, cells in zip(table.columns, columns, strict=True)
    ]
    elastic = [index for index, column in enumerate(table.columns) if column.wrap]
    for index in elastic:
        widths[index] = min(widths[index], WIDTH)
    while _total(widths) > WIDTH:
        widest = max(elastic, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _numeric(table: Table) -> list[bool]:
    """Return for each column whether it holds numbers alone, which stand right."""
    nothing = {type(None)}
    kinds = [{type(row[place]) for row in table.rows} for place in range(len(table.columns))]
    return [bool(one - nothing) and one <= {int, float, Decimal} | nothing for one in kinds]


def _widest(texts: Sequence[str]) -> int:
    return max(map(len if "".join(texts).isascii() else _width, texts))


def _width(text: str) -> int:
    """Return the columns of a terminal that printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


@cache
def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * max(width - _width(text), 0)
    return blanks + text if right else text + blanks
