"""What the analysis of a trace needs to know beside its events: parameter rows and the SQL.

Both are worked out from the profiles and templates, which takes longer than to analyse a small
trace; so they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from trace_sql import __version__
from trace_sql.digest import blake2b
from trace_sql.kept import find, keep, state_of
from trace_sql.resources import data_folder
from trace_sql.settings import Settings
from trace_sql.views import load_views, render

_TRACE = "\0trace"
"""Stands for the trace_id in a kept plan: no trace has it."""

_KEPT = 16
"""Plans kept: one is asked for with each model or option."""

_SPOKEN = ("run", "tags", "name", "config_path", "phase", "paths")
"""Settings that neither a plan nor a stored view depends on."""


class Plan(NamedTuple):
    """Rows for BASE_TABLES by table, the SQL of the views that are templates by view.

    `summary` has what describes the model in words, label and value; none where it is not known.
    """

    rows: Mapping[str, list[list[Any]]]
    sql: Mapping[str, str]
    summary: Sequence[Sequence[str]] = ()


@cache
def fingerprint() -> str:
    """Return a key of the SQL, the profiles, our version and the engine's."""
    from trace_sql import engine

    folders = (data_folder("sql"), data_folder("profiles"))
    name = f"content-{state_of(*folders)}.json"
    content = find(name)
    if not isinstance(content, str):
        digest = blake2b(digest_size=8)
        for folder in folders:
            for path in sorted((*folder.rglob("[!.]*.sql"), *folder.rglob("[!.]*.toml"))):
                digest.update(path.name.encode() + path.read_bytes())
        content = digest.hexdigest()
        keep(name, content, 2)
    text = f"{__version__} {engine.__version__} {content}"
    return blake2b(text.encode(), digest_size=8).hexdigest()


def settings_key(settings: Settings) -> str:
    """Return a key of the settings that a result depends on."""
    given = {key: value for key, value in settings.given().items() if key not in _SPOKEN}
    text = json.dumps(given, sort_keys=True)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def make_plan(trace_id: str, settings: Settings) -> Plan:
    """Return the plan for a trace; raises what `parameters` raises."""
    name = f"plan-{fingerprint()}-{state_of()}-{settings_key(settings)}.json"
    plan = _kept(name)
    if plan is None:
        plan = _worked_out(settings)
        keep(name, plan._asdict(), _KEPT)
    rows = {
        table: [[trace_id if value == _TRACE else value for value in row] for row in listed]
        for table, listed in plan.rows.items()
    }
    return plan._replace(rows=rows)


def _worked_out(settings: Settings) -> Plan:
    from trace_sql.parameters import parameters

    given = parameters(_TRACE, settings)
    templates = [view for view in load_views().values() if view.is_template]
    return Plan(
        {table: [list(row) for row in rows] for table, rows in given.rows.items()},
        {view.name: render(view, given.values) for view in templates},
        given.summary,
    )


def _kept(name: str) -> Plan | None:
    try:
        return Plan(**find(name))
    except TypeError:
        return None
