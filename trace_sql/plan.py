"""What the analysis of a trace needs to know beside its events: parameter rows and the SQL.

Both are worked out from the profiles and templates, which takes longer than to analyse a small
trace; so they are kept, like Python's own compiled files, in the package's `__pycache__`, or where
nothing may be written there in a folder that is this user's alone. The store would not do: what it
holds is data that may come from anyone, and SQL read from there would be run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from trace_sql import __version__
from trace_sql.macros import macro_names, macro_sql
from trace_sql.resources import cache_folder, data_folder
from trace_sql.settings import Settings
from trace_sql.views import load_views, render

_TRACE = "\0trace"
"""Stands for the trace_id in a kept plan: no trace has it."""

_KEPT = 16
"""Plans kept: one is asked for with each model or option."""

_SPOKEN = ("run", "tags", "name", "config_path", "phase", "paths")
"""Settings that neither a plan nor a stored view depends on."""


@dataclass(frozen=True)
class Plan:
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

    digest = hashlib.blake2b(f"{__version__} {engine.__version__}".encode(), digest_size=8)
    for view in load_views().values():
        digest.update(f"{view.name} {view.text}".encode())
    for name in sorted(macro_names()):
        digest.update(macro_sql(name).encode())
    for path in sorted(data_folder("profiles").rglob("*.toml")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def settings_key(settings: Settings) -> str:
    """Return a key of the settings that a result depends on."""
    given = {key: value for key, value in settings.given().items() if key not in _SPOKEN}
    text = json.dumps(given, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def make_plan(trace_id: str, settings: Settings) -> Plan:
    """Return the plan for a trace; raises what `parameters` raises."""
    name = f"plan-{fingerprint()}-{_code()}-{settings_key(settings)}.json"
    plan = _kept(name)
    if plan is None:
        plan = _worked_out(settings)
        _keep(plan, name)
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
        given.summary,
    )


def _folders() -> list[Path]:
    """Folders that may hold kept plans; what is in the last one must be ours to be trusted."""
    package = Path(cache_from_source(__file__)).parent
    try:
        return [package, cache_folder() / "trace_sql_plans"]
    except RuntimeError:
        return [package]


def _kept(name: str) -> Plan | None:
    for folder in filter(_is_safe, _folders()):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            content = json.loads((folder / name).read_bytes())
            return Plan(**content)
    return None


def _is_safe(folder: Path) -> bool:
    """Whether nobody but this user, or who installed the package, could have written there."""
    if folder.parent == Path(__file__).parent or not hasattr(os, "getuid"):
        return True
    try:
        stat = folder.stat()
    except OSError:
        return False
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022


@cache
def _code() -> str:
    """Return a key of the modules that work a plan out."""
    stats = [
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(Path(__file__).parent.glob("*.py"))
    ]
    return hashlib.blake2b(repr(stats).encode(), digest_size=4).hexdigest()


def _keep(plan: Plan, name: str) -> None:
    # Only saves time: there may be no place that can be written.
    for folder in _folders()[1 if sys.dont_write_bytecode else 0 :]:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_safe(folder):
                _write(plan, folder / name)
                return


def _write(plan: Plan, target: Path) -> None:
    old = sorted(target.parent.glob("plan-*"), key=lambda path: path.stat().st_mtime)
    for path in old[: max(0, len(old) - _KEPT + 1)]:
        path.unlink(missing_ok=True)
    part = target.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}")
    try:
        part.write_text(json.dumps(vars(plan)), encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
