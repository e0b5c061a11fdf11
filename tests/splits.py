"""Made traces and what the product makes of them: many in one session, judged event by event.

Many small traces are analysed together, as the views allow: planning costs more than work.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import pytest

from fixtures import Made, Row, Scenario, kind, make
from fixtures.scenario import Tamper
from trace_sql import engine
from trace_sql.analysis import create_table
from trace_sql.base_tables import BASE_TABLES
from trace_sql.macros import make_macros
from trace_sql.parameters import parameters
from trace_sql.store import Settings
from trace_sql.views import load_views, render, sources

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Case:
    """A trace to make, and what is told about it."""

    kind: str
    layers: int
    scenario: Scenario = field(default_factory=Scenario)
    told: int | None = None
    """The layer count that is given, right or wrong."""
    tampered_pass: tuple[Tamper, int] | None = None
    """One pass is tampered with, the one of this number (modulo their count)."""
    configured: bool = False
    """The config that the trace is made with is told."""
    wrong_layers: int | None = None
    """What is told is the config of so many layers."""
    profile: str | None = None
    """The profile that is told, right or wrong."""

    @property
    def config(self) -> dict[str, Any]:
        return kind(self.kind).model_config(self.layers, self.scenario.loops)

    def settings(self) -> Settings:
        if not self.configured:
            return Settings(num_layers=self.told, profile=self.profile)
        layers = self.wrong_layers or self.layers
        return Settings(config=kind(self.kind).model_config(layers, self.scenario.loops))

    def made(self) -> Made:
        config = kind(self.kind).model_config(self.layers, self.scenario.loops)
        made = make(config, self.kind, self.scenario)
        if self.tampered_pass is not None:
            tamper_with_one(made, *self.tampered_pass)
        return made


@dataclass(frozen=True)
class Split:
    """What the product finds in one made trace."""

    made: Made
    verdict: dict[str, Any]
    passes: list[dict[str, Any]]
    places: dict[int, tuple[Any, ...]]
    """pass_no, loop_no, layer_no, slot and region by event_id"""


def tamper_with_one(made: Made, how: Tamper, number: int) -> None:
    """Rename kernels of one pass: a boundary kernel that is missing, or one too many.

    One is left: kernels before the first pass with a boundary count as outside of all passes.
    """
    shown = made.truth.passes
    if not shown:
        return
    random = Random(number)
    pass_no = shown[number % len(shown)].pass_no
    bounds = {*made.truth.anchor_names, *made.truth.entry_names}
    main = kind(made.truth.kind).streams["main"]
    rows = [row for row in made.truth.rows or () if row.pass_no == pass_no]
    hits = [row.event_id for row in rows if made.events[row.event_id]["name"] in bounds]
    others = [
        row.event_id
        for row in rows
        if row.region == "layer" and row.event_id not in hits
        if made.events[row.event_id]["tid"] == main
        and "attn" not in made.events[row.event_id]["name"]
    ]
    if how == "double" and others:
        made.events[random.choice(others)]["name"] = made.truth.anchor_names[0]
    elif how != "double" and len(hits) > 1:
        made.events[hits[0] if how == "shift" else random.choice(hits)]["name"] = "renamed"


# The session: what `analysis` does for one trace, for many.


@cache
def in_order(*targets: str) -> tuple[str, ...]:
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            for source in sorted(sources(name) & load_views().keys()):
                visit(source)
            found[name] = None

    for target in targets:
        visit(target)
    return tuple(found)


def event_row(trace_id: str, event_id: int, event: dict[str, Any]) -> tuple[Any, ...]:
    args = event.get("args") or {}
    values = {
        "event_id": event_id,
        "trace_id": trace_id,
        **{key: event.get(key) for key in ("ph", "cat", "name")},
        **{key: str(event[key]) if key in event else None for key in ("pid", "tid", "id")},
        "ts_ns": event.get("ts"),
        "dur_ns": event.get("dur"),
        "external_id": args.get("External id"),
        **{key: args.get(key) for key in ("device", "stream", "correlation")},
        "args": json.dumps(args),
    }
    return tuple(values.get(column) for column in BASE_TABLES["raw_events"])


def split_all(cases: Sequence[Case], mades: Sequence[Made] | None = None) -> list[Split]:
    """Analyse the traces of `cases`, or `mades` for them; all must get the same profile."""
    mades = mades or [case.made() for case in cases]
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in BASE_TABLES}
    values: dict[str, Any] = {}
    for number, (case, made) in enumerate(zip(cases, mades, strict=True)):
        trace_id = f"{number:04}"
        given = parameters(trace_id, case.settings())
        assert number == 0 or values == given.values, "cases of different profiles"
        values = dict(given.values)
        for table, more in given.rows.items():
            of_the_profile = table in ("boundary_rules", "boundary_patterns")
            rows[table] = more if of_the_profile else rows[table] + more
        rows["raw_events"] += [event_row(trace_id, i, e) for i, e in enumerate(made.events)]
        start = min((event["ts"] for event in made.events), default=0)
        fact = {"trace_id": trace_id, "name": trace_id, "min_ts_ns": start}
        rows["raw_facts"].append(tuple(fact.get(column) for column in BASE_TABLES["raw_facts"]))
    with contextlib.closing(engine.open_database()) as connection:
        macros: set[str] = set()
        for table, columns in BASE_TABLES.items():
            create_table(connection, table, columns, [])
            fill(connection, table, columns, rows[table])
        for name in in_order("activity_layers", "passes", "trace_verdicts"):
            view = load_views()[name]
            what = "table" if view.keep else "view"
            make_macros(connection, view.text, macros)
            connection.execute(f"create {what} {name} as {render(view, values)}")
        places: dict[str, dict[int, Any]] = {}
        for trace_id, event_id, *place in connection.execute(
            "select trace_id, event_id, pass_no, loop_no, layer_no, slot, region"
            " from activity_layers"
        ).fetchall():
            places.setdefault(trace_id, {})[event_id] = tuple(place)
        passes = dicts(connection, "from passes order by trace_id, pass_no")
        verdicts = {row["trace_id"]: row for row in dicts(connection, "from trace_verdicts")}
    return [
        Split(
            made,
            verdicts[f"{number:04}"],
            [row for row in passes if row["trace_id"] == f"{number:04}"],
            places.get(f"{number:04}", {}),
        )
        for number, made in enumerate(mades)
    ]


def fill(connection: Any, table: str, columns: dict[str, str], rows: list[Any]) -> None:
    """Insert many rows at once: one list a column."""
    if rows:
        lists = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
        connection.execute(
            f"insert into {table} select {lists}", [list(c) for c in zip(*rows, strict=True)]
        )


def dicts(connection: Any, sql: str) -> list[dict[str, Any]]:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# The judgement.


def in_steps(made: Made) -> dict[int, tuple[bool, bool]]:
    """Tell of each device event whether a graph and whether a step annotation launched it."""
    steps = [
        (event["pid"], event["tid"], event["ts"], event["ts"] + event["dur"])
        for event in made.events
        if event.get("cat") == "user_annotation" and "ProfilerStep" not in event["name"]
    ]
    calls = {
        event["args"]["correlation"]: event
        for event in made.events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    found = {}
    for event_id, event in enumerate(made.events):
        if event.get("cat") in DEVICE:
            call = calls.get(event["args"]["correlation"])
            found[event_id] = (
                call is not None and "Graph" in call["name"],
                any(
                    (call["pid"], call["tid"]) == (pid, tid) and start <= call["ts"] < end
                    for pid, tid, start, end in steps
                    if call is not None
                ),
            )
    return found


def wrong_events(case: Case, split: Split) -> list[str]:
    """List the events whose place is wrong and not allowed to be."""
    if split.verdict["verdict"] == "refused":
        return []
    made = split.made
    rows = made.truth.rows or []
    side = kind(case.kind).streams["side"]
    # A pass of which no boundary is left has no number of its own; the others keep their order.
    left = (r for r in rows if made.events[r.event_id]["name"] in made.truth.anchor_names)
    offset = min((row.pass_no for row in left if row.pass_no is not None), default=0)
    known = in_steps(made)
    refused = any(row["status"] == "refused" for row in split.passes)
    complete = not (case.scenario.cut_start or case.scenario.cut_end or refused)

    def allowed(row: Row, region: str | None) -> bool:
        graph, stepped = known[row.event_id]
        if made.events[row.event_id]["tid"] == side and graph and case.scenario.side == "late":
            return True
        if region is None:
            return not (complete and stepped)
        if row.loop_no is not None and row.layer_no is None and region in ("prologue", "epilogue"):
            # Between two loops nothing tells what ends the one from what begins the other.
            return split.places[row.event_id][2] is None
        if "layer" in (row.region, region):
            return False
        nameless = case.kind == "vllm_gptoss_amd" and not case.configured
        return not stepped or (nameless and row.region == "prologue" and not graph)

    wrong = []
    for row in rows:
        pass_no, *place, region = split.places[row.event_id]
        slot = row.slot if row.region == "layer" else None
        right = [*place, region] == [row.loop_no, row.layer_no, slot, row.region] and (
            region == "outside" or pass_no == (row.pass_no or 0) - offset
        )
        if not right and not allowed(row, region):
            name = made.events[row.event_id]["name"][:50]
            wrong.append(f"{row} is {split.places[row.event_id]} ({name})")
    return wrong


def assert_right(cases: Sequence[Case]) -> list[Split]:
    """Fail with the first trace that is wrong, in words that make it again."""
    splits = split_all(cases)
    for case, split in zip(cases, splits, strict=True):
        if wrong := wrong_events(case, split):
            evidence = "\n".join(f"{row['status']}: {row['evidence']}" for row in split.passes)
            pytest.fail(f"{case!r}\n{evidence}\n{len(wrong)} wrong, first {wrong[0]}")
    return splits
