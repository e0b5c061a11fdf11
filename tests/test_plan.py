"""Plans: what is kept is what would be worked out, and nothing kept outlives its causes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from trace_sql import kept, plan
from trace_sql.parameters import parameters
from trace_sql.plan import Plan, make_plan
from trace_sql.store import Settings
from trace_sql.views import load_views, render

TRACE = "0123456789ab"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for plans; another one beside it, `own`, stands in for the user's cache."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(kept, "_folders", lambda: [tmp_path / "kept", tmp_path / "own"])
    return tmp_path / "kept"


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of every plan that is worked out from here on."""
    seen: list[Settings] = []
    original = plan._worked_out

    def record(settings: Settings) -> Plan:
        seen.append(settings)
        return original(settings)

    monkeypatch.setattr(plan, "_worked_out", record)
    return seen


def plain(value: Any) -> Any:
    """Return rows as JSON has them: no tuples."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(num_layers=36, profile="gpt_oss"), Settings(capture="fedcba987654")],
    ids=["nothing said", "profile", "capture"],
)
def test_a_kept_plan_is_the_same(
    settings: Settings, folder: Path, worked_out: list[Settings]
) -> None:
    first, second = make_plan(TRACE, settings), make_plan(TRACE, settings)
    assert worked_out == [settings]
    given = parameters(TRACE, settings)
    views = [view for view in load_views().values() if view.is_template]
    assert views
    for made in (first, second):
        assert plain(made.rows) == plain(given.rows)
        assert made.sql == {view.name: render(view, given.values) for view in views}


def test_only_what_a_plan_depends_on_makes_another(
    folder: Path, worked_out: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_plan(TRACE, Settings())
    make_plan("another", Settings(run="r", name="n", phase="decode"))
    assert len(worked_out) == 1
    make_plan(TRACE, Settings(num_layers=3))
    assert len(worked_out) == 2
    monkeypatch.setattr(plan, "state_of", lambda: "changed")
    make_plan(TRACE, Settings())
    assert len(worked_out) == 3


@pytest.mark.parametrize("content", [b"", b"[]", b'{"rows": {}}', b"\xff"])
def test_a_damaged_plan_is_worked_out_again(
    content: bytes, folder: Path, worked_out: list[Settings]
) -> None:
    whole = make_plan(TRACE, Settings())
    (file,) = folder.glob("plan-*")
    file.write_bytes(content)
    assert plain(make_plan(TRACE, Settings()).rows) == plain(whole.rows)
    assert len(worked_out) == 2


def test_few_plans_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_worked_out", lambda settings: Plan({}, {}))
    for layers in range(1, 40):
        make_plan(TRACE, Settings(num_layers=layers))
    assert len(list(folder.glob("plan-*"))) == 16


def test_where_no_bytecode_is_written_the_user_keeps_plans(
    folder: Path, worked_out: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for _ in range(2):
        assert make_plan(TRACE, Settings()).sql
    assert len(worked_out) == 1
    assert not folder.exists()
    assert len(list((folder.parent / "own").glob("plan-*"))) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes here")
def test_sql_that_others_could_have_written_is_not_run(
    folder: Path, worked_out: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    make_plan(TRACE, Settings())
    own = folder.parent / "own"
    own.chmod(0o777)
    make_plan(TRACE, Settings())
    assert len(worked_out) == 2
    own.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: own.stat().st_uid + 1)
    make_plan(TRACE, Settings())
    assert len(worked_out) == 3


def test_where_nothing_can_be_kept_all_works(folder: Path, worked_out: list[Settings]) -> None:
    for name in ("kept", "own"):
        (folder.parent / name).write_text("a file")
    for _ in range(2):
        assert make_plan(TRACE, Settings()).sql
    assert len(worked_out) == 2


def test_the_users_folder_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept._folders()[1].parent == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert len(kept._folders()) == 1


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
