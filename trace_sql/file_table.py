"""The files of an ingest as a table: what was taken as what, and what was skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from trace_sql.database import Database
from trace_sql.inputs import Input, Skipped, trace_name
from trace_sql.output import Column, Table
from trace_sql.safe_text import utf8
from trace_sql.store import Ingested

_ID = Column("trace_id", "Id")
_NAME = Column("name", "Name", wrap=True)
_STATE = Column("state", "State")
_ROLE = Column("role", "Role")
_STAGE = Column("stage", "Stage")
_RANK = Column("rank", "Rank")
_SOURCE = Column("rank_source", "From")
_NOTE = Column("note", "Note", wrap=True)
_EVERY = (
    *(_ID, _NAME, _STATE, _ROLE, _STAGE, _RANK, _SOURCE),
    Column("place", "Place"),
    Column("world_size", "Of"),
    Column("ranks", "Ranks"),
    Column("conflict", "Conflict"),
    Column("n_repaired", "Repaired"),
    Column("n_lost", "Lost"),
    _NOTE,
    Column("path", "Path", wrap=True),
)
_FOR_PEOPLE = (_ID, _NAME, _STATE, _ROLE, _STAGE, _RANK, _SOURCE, _NOTE)
_MAY_BE_EMPTY = (_STAGE, _NOTE)
_SHOWN_NAMES = 3


def file_table(
    db: Database,
    taken: Sequence[tuple[Input, Ingested]],
    skipped: Sequence[Skipped],
    *,
    every: bool,
) -> tuple[Table, list[str]]:
    """Return a table of files, and a line for each rank that several traces record.

    `every` gives a row to each file that was skipped, and every column. Else files skipped for one
    reason share a row, and columns without a value are left out.
    """
    files = db.query("select * from trace_files").dicts()
    rows = _taken(taken, files)
    if every:
        rows += [
            {"name": PurePath(one.label).name, "note": one.reason, "path": one.label}
            for one in skipped
        ]
    else:
        rows += [{"name": names, "note": reason} for names, reason in by_reason(skipped)]
    shown = [
        column
        for column in (_EVERY if every else _FOR_PEOPLE)
        if every or column not in _MAY_BE_EMPTY or any(row.get(column.key) for row in rows)
    ]
    for row in rows:
        row.setdefault("state", "skipped")
        if not every and row.get("rank") is not None and row["world_size"] is not None:
            row["rank"] = f"{row['rank']} of {row['world_size']}"
    cells = [tuple(row.get(column.key) for column in shown) for row in rows]
    return Table("files", "", tuple(shown), cells), _conflicts(files)


def _taken(
    taken: Sequence[tuple[Input, Ingested]], files: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    by_file = {(row["trace_id"], row["path"]): row for row in files}
    rows = []
    seen: set[str] = set()
    for one, done in taken:
        row = dict(by_file[done.trace_id, utf8(one.label)])
        row["state"] = "new" if done.fresh else "already stored"
        if done.trace_id in seen:
            row |= {"state": "copy", "name": trace_name(one.path, one.member)}
        seen.add(done.trace_id)
        rows.append(row)
    return rows


def by_reason(skipped: Iterable[Skipped]) -> list[tuple[str, str]]:
    """Return some names and the number of files for each reason: a run's folder holds many."""
    names: dict[str, list[str]] = {}
    for one in skipped:
        names.setdefault(one.reason, []).append(PurePath(one.label).name)
    return [
        (
            ", ".join(found[:_SHOWN_NAMES])
            + (f", ... ({len(found)} files)" if len(found) > _SHOWN_NAMES else ""),
            reason,
        )
        for reason, found in names.items()
    ]


def _conflicts(files: list[dict[str, Any]]) -> list[str]:
    """Return a line for each rank of several traces."""
    names = {row["trace_id"]: row["name"] for row in files}
    lines: dict[str, None] = {}
    for row in files:
        if row["conflict"]:
            ids = sorted({row["trace_id"], *row["conflict"]}, key=lambda one: (names[one], one))
            named = ", ".join(f"{names[one]} ({one})" for one in ids[:_SHOWN_NAMES])
            named += ", ..." if len(ids) > _SHOWN_NAMES else ""
            rank = row["place"] if row["rank"] is None else f"rank {row['rank']}"
            of = f" ({row['stage']})" if row["stage"] else ""
            lines[f"{rank}{of} is in {len(ids)} files: {named}; name the one you mean by id"] = None
    return list(lines)
