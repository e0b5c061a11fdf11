"""What the analysis of a trace needs to know beside its events: parameter rows and the SQL.

Both are worked out from the profiles and templates, which takes longer than to analyse a small
trace; so they are kept, like Python's own compiled files, in the package's `__pycache__`. The store
would not do: what it holds is data, and SQL read from there would be run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from trace_sql import __version__
from trace_sql.resources import data_folder
from trace_sql.settings import Settings
from trace_sql.views import load_views, render

_TRACE = "\0trace"
"""Stands for the trace_id in a kept plan: no trace has it."""

_KEPT = 16
"""Plans kept: one is asked for with each model or option."""

_SPOKEN = ("run", "tags", "name", "config_path", "phase")
"""Settings that neither a plan nor a stored view depends on."""


@dataclass(frozen=True)
class Plan:
    """Rows for BASE_TABLES by table, and the SQL of the views that are templates by view."""

    rows: Mapping[str, list[list[Any]]]
    sql: Mapping[str, str]


@cache
def fingerprint() -> str:
    """Return a key of the SQL, the profiles, our version and the engine's."""
    from trace_sql import engine

    digest = hashlib.blake2b(f"{__version__} {engine.__version__}".encode(), digest_size=8)
    for name, pattern in (("sql", "*/*.sql"), ("profiles", "*.toml")):
        for path in sorted(data_folder(name).glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def settings_key(settings: Settings) -> str:
    """Return a key of the settings that a result depends on."""
    given = {key: value for key, value in settings.given().items() if key not in _SPOKEN}
    text = json.dumps(given, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def make_plan(trace_id: str, settings: Settings) -> Plan:
    """Return the plan for a trace; raises what `parameters` raises."""
    kept = _folder() / f"plan-{fingerprint()}-{_code()}-{settings_key(settings)}.json"
    try:
        content = json.loads(kept.read_bytes())
        plan = Plan(content["rows"], content["sql"])
    except (OSError, ValueError, LookupError, TypeError):
        plan = _worked_out(settings)
        _keep(plan, kept)
    rows = {
        table: [[trace_id if value == _TRACE else value for value in row] for row in listed]
        for table, listed in plan.rows.items()
    }
    return replace(plan, rows=rows)


def _worked_out(settings: Settings) -> Plan:
    from trace_sql.parameters import parameters

    given = parameters(_TRACE, settings)
    templates = [view for view in load_views().values() if view.is_template]
    return Plan(
        {table: [list(row) for row in rows] for table, rows in given.rows.items()},
        {view.name: render(view, given.values) for view in templates},
    )


def _folder() -> Path:
    return Path(cache_from_source(__file__)).parent


@cache
def _code() -> str:
    """Return a key of the modules that work a plan out."""
    stats = [
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(Path(__file__).parent.glob("*.py"))
    ]
    return hashlib.blake2b(repr(stats).encode(), digest_size=4).hexdigest()


def _keep(plan: Plan, target: Path) -> None:
    if sys.dont_write_bytecode:
        return
    part = target.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}")
    # Only saves time: the package may stand where nothing can be written.
    with contextlib.suppress(OSError):
        target.parent.mkdir(exist_ok=True)
        old = sorted(target.parent.glob("plan-*"), key=lambda path: path.stat().st_mtime)
        for path in old[: max(0, len(old) - _KEPT + 1)]:
            path.unlink(missing_ok=True)
        try:
            part.write_text(json.dumps({"rows": plan.rows, "sql": plan.sql}), encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
