"""Tables in each format: what a reader, a program, a terminal and a spreadsheet get."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_sql.output import (
    FORMATS,
    WIDTH,
    Column,
    Table,
    json_text,
    plain_table,
    render,
)
from trace_sql.safe_text import clean, escaped, readable, utf8

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\u202egnp.exe",
    "a\nb\r\tc",
    "\x00",
    "a|b`c<d>e*f_g\\",
    "</script><b>",
    "=cmd()",
    "'; drop table passes; --",
    "\u2028\ufeff",
    "\U000e0001tag",
]
TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=150))
CELL = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)


def unsafe(text: str) -> set[str]:
    """Return the characters that a terminal could obey; line breaks are ours."""
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} and c != "\n"}


def cells_of(line: str) -> list[str]:
    """Split a Markdown row as a renderer does: at bars that no backslash escapes."""
    return re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]


def two_columns(rows: list[tuple[Any, Any]]) -> Table:
    return Table("t", "T", (Column("a", "A", wrap=True), Column("b", "B", 3, wrap=True)), rows)


@given(st.lists(st.tuples(CELL, CELL), max_size=5), st.sampled_from(FORMATS))
def test_no_name_reaches_the_terminal_as_a_control(rows: list[tuple[Any, Any]], form: str) -> None:
    assert unsafe(render([two_columns(rows)], form)) == set()


@given(st.lists(st.tuples(TEXT, st.integers()), max_size=5))
def test_a_text_table_fits_and_loses_nothing(rows: list[tuple[str, int]]) -> None:
    rows = [(name, number % 10**30) for name, number in rows]
    lines = render([two_columns(rows)], "table").splitlines()
    wide = {"W": 2, "F": 2}
    for line in lines:
        assert sum(wide.get(unicodedata.east_asian_width(c), 1) for c in line) <= WIDTH
    # Folding moves blanks, nothing else.
    kept = re.sub(r"\s", "", "".join(lines))
    for name, number in rows:
        for piece in (*clean(name).split(), str(number)):
            if len(piece) < 10:
                assert piece in kept


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_json_gives_back_what_went_in(rows: list[tuple[Any, Any]]) -> None:
    def finite(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    read = json.loads(render([two_columns(rows)], "json"), parse_constant=refuse)
    assert read == [{"a": finite(a), "b": finite(b)} for a, b in rows]


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_a_markdown_row_has_its_cells(rows: list[tuple[Any, Any]]) -> None:
    title, blank, *lines = render([two_columns(rows)], "markdown").splitlines()
    assert (title, blank) == ("## T", "")
    assert [len(cells_of(line)) for line in lines] == [2] * (len(rows) + 2)
    for line in lines[2:]:
        assert not re.search(r"(?<!\\)(?:\\\\)*[<`]", line), "HTML or code in a cell"


@given(TEXT)
def test_csv_reads_back_as_text_that_starts_no_formula(text: str) -> None:
    written = render([Table("t", "", (Column("a", "A"),), [(text,)])], "csv")
    _, *rows = csv.reader(io.StringIO(written))
    read = rows[0][0] if rows and rows[0] else ""
    assert read.removeprefix("'") == clean(text).removeprefix("'")
    if read.lstrip()[:1] in {"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"}:
        float(read)


def test_csv_values() -> None:
    row = (None, True, 12345678901234567890, 0.1 + 0.2, [1, "a"], {"k": None}, "-1.5", "-x", "a,b")
    columns = tuple(Column(f"c{number}", "") for number in range(len(row)))
    written = render([Table("t", "", columns, [row])], "csv").splitlines()[1]
    assert next(csv.reader([written])) == [
        "",
        "true",
        "12345678901234567890",
        "0.30000000000000004",
        '[1, "a"]',
        '{"k": null}',
        "-1.5",
        "'-x",
        "a,b",
    ]


def test_cells_of_a_text_table() -> None:
    rows = [
        (1, 0.12345, None, True, [1, 2], {"gpu": "H200"}),
        (22, 12.0, "x", False, [], {}),
        (3, math.nan, "y", None, None, None),
    ]
    columns = (
        Column("n", "N"),
        Column("ms", "Time(ms)", 3),
        Column("s", "Text"),
        Column("b", "Flag"),
        Column("l", "List"),
        Column("m", "Map"),
    )
    assert render([Table("t", "Title", columns, rows)], "table") == (
        "Title\n"
        " N  Time(ms)  Text  Flag  List  Map\n"
        "--  --------  ----  ----  ----  --------\n"
        " 1     0.123  -     yes   1,2   gpu=H200\n"
        "22    12.000  x     no    -     -\n"
        " 3         -  y     -     -     -\n"
    )


def test_long_names_fold_behind_their_marks() -> None:
    name = "void flashinfer::norm::FusedAddRMSNormKernel<8, bf16>(T1) " + "x" * 50 + " and on"
    columns = (Column("name", "Name", wrap=True), Column("other", "O" * 60))
    lines = render([Table("t", "", columns, [(name, 1)])], "table").splitlines()
    assert [line[:38].rstrip() for line in lines[2:]] == [
        "void flashinfer::norm::",
        "FusedAddRMSNormKernel<8, bf16>(T1)",
        "x" * 38,
        "x" * 12 + " and on",
    ]


def test_small_parts_go_to_the_rest_where_a_table_is_too_wide() -> None:
    labels = [f"Category{number}" for number in range(12)]
    columns = (
        Column("layer", "L"),
        *(Column(label.lower(), label, 3, part=True) for label in labels),
        Column("rest", "Other", 3, part=True),
    )
    rows = [(layer, *(float(n) for n in range(12)), 0.5) for layer in range(2)]
    table = Table("layers", "", columns, rows)
    text = render([table], "table")
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    kept = [label for label in labels if label in lines[0].split()]
    gone = labels[: len(labels) - len(kept)]
    assert kept == labels[len(gone) :] and gone
    assert lines[-1] == f"Other includes {', '.join(gone)}; --format json has each."
    shown = [float(cell) for cell in lines[2].split()[1:]]
    assert sum(shown) == sum(range(12)) + 0.5
    assert json.loads(render([table], "json"))[0].keys() == {c.key for c in columns}
    assert all(label in render([table], "markdown") for label in labels)


def test_a_table_that_cannot_fit_becomes_a_block_a_row() -> None:
    names = [f"column_with_a_long_name_{number}" for number in range(6)]
    rows = [tuple(range(6)), ("text " * 50, *range(5))]
    lines = render([plain_table("rows", names, rows)], "table").splitlines()
    assert lines[:3] == ["-- row 1", "column_with_a_long_name_0  0", "column_with_a_long_name_1  1"]
    assert "-- row 2" in lines
    assert max(map(len, lines)) <= WIDTH


def test_a_column_name_that_comes_twice_is_kept() -> None:
    table = plain_table("rows", ["a", "a", "b", "a"], [(1, 2, 3, 4)])
    assert json.loads(render([table], "json")) == [{"a": 1, "a_2": 2, "b": 3, "a_3": 4}]


def test_headings_and_titles_are_data_too() -> None:
    table = Table("t", "\x1b[2J", (Column("\x1b[2J", "\x1b[2J|x"),), [(1,)])
    for form in FORMATS:
        assert unsafe(render([table], form)) == set()
    long = Table("t", "word " * 50, (Column("n", "N"),), [(1,)])
    assert max(map(len, render([long], "table").splitlines())) <= WIDTH
    assert "\\\\x1b\\[2J\\|x" in render([table], "markdown")


def test_an_empty_table() -> None:
    table = plain_table("rows", ["a", "b"], [])
    assert render([table], "table") == "a  b\n-  -\n"
    assert render([table], "json") == "[]\n"
    assert render([table], "csv") == "a,b\n"


def test_several_tables_in_json_stand_under_their_keys() -> None:
    tables = [Table(key, "", (Column("n", "N"),), [(key,)]) for key in ("one", "two")]
    assert json.loads(render(tables, "json")) == {"one": [{"n": "one"}], "two": [{"n": "two"}]}
    assert render(tables, "csv") == "n\none\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("0.5"), 0.5),
        (2**70, 2**70),
        (math.inf, None),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        ({1: [math.nan]}, {"1": [None]}),
        ("\x7f\x9b", "\x7f\x9b"),
        ("é核", "é核"),
    ],
)
def test_json_values(value: Any, expected: Any) -> None:
    text = json_text(value)
    assert json.loads(text) == expected
    assert unsafe(text) == set()


def test_printable_text_is_kept_as_it_is() -> None:
    assert clean("é核 \\n") == "é核 \\n"
    assert json_text("é核") == '"é核"\n'
    assert escaped("nvjet_tst_64x64 &c") == "nvjet_tst_64x64 &amp;c"
    assert escaped("_x_ ~~ $a$") == "\\_x\\_ \\~\\~ \\$a\\$"
    assert escaped("http://a WWW.b c:d e.f") == "http\\://a WWW\\.b c:d e.f"


def test_what_nobody_sees_comes_out_as_escapes() -> None:
    text = "a\u200b\u3164\ufe0f\U000e0120\u00ad\ue000\ud800"
    assert clean(text) == "a\\u200b\\u3164\\ufe0f\\U000e0120\\xad\\ue000\\ud800"
    assert json_text(text).isascii()
    assert json.loads(json_text(text)) == text


def test_a_text_that_nobody_reads_to_its_end() -> None:
    name = "k" * 3_000_000
    table = plain_table("rows", ["a", name], [(name, 1)])
    for form in ("table", "markdown"):
        text = render([table], form)
        assert len(text) < 20_000
        assert "(3000000 characters)" in "".join(text.split("\n")).replace("  ", "")
    assert json.loads(render([table], "json")) == [{"a": name, name: 1}]
    assert readable("k\x1b" * 1000) == "k\\x1b" * 1000


@pytest.mark.parametrize(
    ("text", "columns"),
    [("ab", 2), ("核", 2), ("ｗ", 2), ("é", 1), ("e\u0301", 1), ("e\u20dd", 1), ("\U0001f680", 2)],
)
def test_columns_line_up_behind_wide_signs(text: str, columns: int) -> None:
    rows = [("x" * 10, 1), (text, 1)]
    *_, line = render([plain_table("rows", ["a", "b"], rows)], "table").splitlines()
    assert line == text + " " * (12 - columns) + "1"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("é核", "é核"),
        ("caf\udce9", "caf\\xe9"),
        ("\udcc3\udca9", "é"),
        ("\ud800", "\\ud800"),
        ("\udce9\ud800", "\\udce9\\ud800"),
    ],
)
def test_words_as_utf8(word: str, text: str) -> None:
    assert utf8(word) == text
