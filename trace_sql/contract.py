"""The contract at the head of each view: what a row is, its grain, its columns.

A view file opens with comment lines:

    -- One row a forward pass.
    -- More sentences where they help.
    -- grain: trace_id, pass_no
    -- keep: yes
    --
    -- trace_id  VARCHAR  -   the trace
    -- wall_ns   BIGINT   ns  from the first start to the last end

Columns stand in order after the empty comment line, fields divided by two or more blanks: name,
DuckDB type, unit ("-" for none), meaning. `keep: yes` asks for the result to be computed once and
kept while a trace is analysed, `keep: store` for it to be written to the store as well, and
`keep: session` for it to be computed once in a session that asks for it, from what is stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

UNITS = ("ns", "us", "ms", "tb_s", "s", "bytes", "pct")
"""Units a column name may end in; a number with a unit must end in it (`wall_ns`)."""


class ContractError(Exception):
    """A view file whose head does not follow the format; names the view and the line."""


@dataclass(frozen=True)
class Column:
    """One column of a view: DuckDB type, unit ("-" for none) and meaning in one sentence."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Contract:
    """What a view promises."""

    summary: str
    grain: tuple[str, ...]
    keep: str
    """"" (computed where it is read), "yes" or "store"."""
    columns: tuple[Column, ...]


def parse_contract(view: str, text: str) -> Contract:
    """Read the contract from the leading comment of a view file.

    Raises ContractError where the summary, the grain or the columns are missing, a column line
    has not four fields, or a unit and a name's suffix disagree.
    """
    sentences: list[str] = []
    grain: tuple[str, ...] = ()
    keep = ""
    in_columns = False
    columns: list[Column] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        body = line[2:].strip()
        if in_columns:
            columns.append(_column(view, body))
        elif body.startswith("grain:"):
            grain = tuple(part.strip() for part in body.removeprefix("grain:").split(","))
        elif body.startswith("keep:"):
            keep = body.removeprefix("keep:").strip()
        elif body:
            sentences.append(body)
        else:
            in_columns = True
    if not sentences or not grain or not columns:
        raise ContractError(f"{view}: the head needs a sentence, a grain line and columns")
    missing = [name for name in grain if name not in {column.name for column in columns}]
    if missing:
        raise ContractError(f"{view}: grain names unknown columns {missing}")
    return Contract(" ".join(sentences), grain, keep, tuple(columns))


def _column(view: str, line: str) -> Column:
    fields = re.split(r" {2,}", line, maxsplit=3)
    if len(fields) != 4:
        raise ContractError(f"{view}: {line!r} needs name, type, unit and meaning")
    column = Column(*fields)
    name = column.name
    # A rate is named by its unit alone, anything else is more than its unit.
    ends = (unit for unit in UNITS if name.endswith(f"_{unit}") or name == unit == "tb_s")
    expected = next(ends, "-")
    if column.unit != expected:
        raise ContractError(f"{view}.{column.name}: unit {column.unit!r}, name says {expected!r}")
    return column
