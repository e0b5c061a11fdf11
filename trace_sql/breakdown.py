"""Time by category, and rules to paste for the kernels that no rule knows."""

from __future__ import annotations

import re

from trace_sql.database import Database
from trace_sql.errors import TraceSqlError
from trace_sql.output import Column, Table, render
from trace_sql.reports import chosen_pass, view_table
from trace_sql.rules import OTHER
from trace_sql.safe_text import odd_characters

_WRAPPERS = ("device_kernel", "Kernel", "Kernel2", "kentry", "trampoline_kernel", "globalKernel")
"""Entry points of template libraries: what runs is their first template argument."""

_GENERIC = ("kernel", "kernel_", "main_kernel", "run", "main", "entry")
"""Function names that say nothing without the namespace before them."""

_LONGEST, _BEGIN = 4000, 200
"""Characters of a name that a rule is made for, and of what stands for a longer one."""

_EXAMPLES = 3
_RULE = Column("rule", "Rule", wrap=True)


def category_report(
    db: Database,
    trace_id: str,
    pass_no: int | None,
    phase: str | None,
    unclassified: bool,
    output_format: str,
) -> str:
    """Return the time by category of a pass, or of all that is selected, in one of FORMATS.

    A phase stands for its first stable pass.

    With `unclassified` it is the kernels of no category, longest first. JSON and CSV have a rule
    in each row; for people the rules stand below the table, one for all kernels that it covers.
    Raises EmptyInputError for a trace without device work, RefusedError for a pass of a trace that
    cannot be split, TraceSqlError for a pass that is not there.
    """
    if pass_no is not None or phase is not None:
        db.require_split(trace_id)
    if pass_no is None and phase is not None:
        pass_no, _ = chosen_pass(db, trace_id, None, phase)
    categories = _categories(db, trace_id, pass_no)
    if not categories.rows:
        db.require_split(trace_id)
        raise TraceSqlError(f"no activities in {_what(pass_no)}")
    if not unclassified:
        return render([categories], output_format)
    found = _unclassified(db, trace_id, pass_no)
    names = [row[0] for row in found.rows]
    if output_format in ("json", "csv"):
        rows = [(*row, rule_text(kernel_pattern(row[0]), [row[0]])) for row in found.rows]
        return render([found._replace(columns=(*found.columns, _RULE), rows=rows)], output_format)
    if not names:
        return f"Every kernel of {_what(pass_no)} has a category.\n"
    rules = pasted_rules(names)
    if output_format == "markdown":
        rules = f"```toml\n{rules}```\n"
    return "\n".join((render([found], output_format), rules))


def _categories(db: Database, trace_id: str, pass_no: int | None) -> Table:
    return view_table(
        db,
        "categories",
        f"Time by category of {_what(pass_no)}",
        (
            Column("category", "Category"),
            Column("n_activities", "Count"),
            Column("n_names", "Names"),
            Column("sum_dur_ms", "Sum(ms)", 3),
            Column("share_pct", "Share%", 1),
            Column("longest", "Longest kernels", wrap=True),
        ),
        "category_table",
        trace_id,
        "sum_dur_ms desc, category",
        _condition(pass_no),
    )


def _unclassified(db: Database, trace_id: str, pass_no: int | None) -> Table:
    return view_table(
        db,
        "unclassified",
        f"Kernels of {_what(pass_no)} that no category rule knows",
        (
            Column("name", "Kernel", wrap=True),
            Column("n_activities", "Count"),
            Column("sum_dur_ms", "Sum(ms)", 3),
            Column("share_pct", "Share%", 1),
        ),
        "kernel_name_table",
        trace_id,
        "sum_dur_ms desc, name",
        f"{_condition(pass_no)} and category = '{OTHER}'",
    )


def pasted_rules(names: list[str]) -> str:
    """Return TOML rules for `names` in their order, one a pattern, ready for a profile."""
    patterns: dict[str, list[str]] = {}
    for name in names:
        patterns.setdefault(kernel_pattern(name), []).append(name)
    return "\n".join(
        rule_text(pattern, examples[:_EXAMPLES]) for pattern, examples in patterns.items()
    )


def rule_text(pattern: str, examples: list[str]) -> str:
    """Return one [[category]] table of a profile; the category is the user's to choose."""
    listed = ", ".join(_toml_string(name[:_LONGEST]) for name in examples)
    return (
        "[[category]]\n"
        f'name = "{OTHER}"  # put the category here; profiles/README.md lists them\n'
        f"pattern = '{pattern}'\n"
        f"examples = [{listed}]\n"
    )


def kernel_pattern(name: str) -> str:
    """Return an RE2 pattern for `name` and the kernels that differ from it in numbers only.

    Return type, template arguments, parameters and numbers at the end are left out, tiles match
    any tile. A wrapper of a template library is told by what it wraps. The pattern always matches
    the name itself. Of a name longer than people read it is the begin.
    """
    if len(name) > _LONGEST:
        return f"^{_escaped(name[:_BEGIN])}"
    plain = re.sub(r"\(anonymous namespace\)::", "", re.sub(r"\.kd$", "", name))
    parts = _demangled(plain)
    if not parts:
        pattern = _of_plain(plain)
    elif parts[-1] in (*_GENERIC, *_WRAPPERS) or len(parts[-1]) < 4:
        pattern = "".join(f"{len(part)}{part}" for part in parts)
    else:
        loose = _loosened(parts[-1])
        pattern = (str(len(parts[-1])) if loose == parts[-1] else r"\d+") + loose
    return pattern if pattern and _matches(pattern, name) else f"^{_escaped(name)}$"


def _of_plain(plain: str) -> str:
    path = re.match(
        r"(?:[\w:]+\s+|std::enable_if<.*>::type\s+)*?((?:\w+::)*\w+)\s*(?=[<(]|$)", plain
    )
    if path is None:
        return ""
    head, last = path[1], path[1].rpartition("::")[2]
    if last in _WRAPPERS:
        inner = re.search(
            r"<[^A-Za-z_]*(?:void|int|bool|\w+::enable\w+<)?\s*((?:\w+::)*\w{4,})", plain
        )
        return rf"\b{last}<.*\b{_loosened(inner[1])}\b" if inner else ""
    if "::" not in head and (last in _GENERIC or len(last) < 4):
        return rf"^(?:void )?{_escaped(last)}(?:[<(]|$)"
    return rf"\b{_loosened(head if last in _GENERIC else last)}\b"


def _loosened(identifier: str) -> str:
    """Escape an identifier; numbers at its end and tiles inside it match any."""
    # Possessive: what digits are split into would be tried in every way otherwise.
    stem = re.sub(r"(?:_?\d++(?:x\d++)*+)++$", "", identifier)
    dropped = stem != identifier and len(stem) >= 4
    parts = re.split(r"\d+(?:x\d+)+", stem if dropped else identifier)
    pattern = r"\d+(?:x\d+)+".join(map(_escaped, parts))
    return pattern + (r"[\dx_]*" if dropped else "")


def _demangled(name: str) -> list[str]:
    """Return the parts of an Itanium-mangled qualified name, none for another name."""
    begin = re.match(r"_ZN?[KVr]*", name)
    parts = []
    place = begin.end() if begin else len(name)
    while length := re.compile(r"\d+").match(name, place):
        end = length.end() + int(length[0])
        part = name[length.end() : end]
        if len(part) < int(length[0]):
            break
        if not part.startswith("_GLOBAL__N"):
            parts.append(part)
        place = end
    return parts


def _escaped(text: str) -> str:
    r"""Escape for RE2 inside a TOML literal string; what cannot stand there matches as any."""
    return "".join(
        char
        if char.isalnum() and char.isascii() or char in "_ :"
        else f"\\{char}"
        if char.isascii() and char.isprintable() and char != "'"
        else "."
        for char in text
    )


def _matches(pattern: str, name: str) -> bool:
    return re.search(pattern, name, re.DOTALL) is not None


def _toml_string(text: str) -> str:
    def written(char: str) -> str:
        if char in '"\\':
            return f"\\{char}"
        if not odd_characters(char):
            return char
        return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"

    return f'"{"".join(map(written, text))}"'


def _what(pass_no: int | None) -> str:
    return "all selected activities" if pass_no is None else f"pass {pass_no}"


def _condition(pass_no: int | None) -> str:
    return "pass_no is null" if pass_no is None else f"pass_no = {pass_no:d}"
