"""The engine as all queries find it."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from command_line import CONFIG, TRACE, answer, command

from trace_sql import analysis, engine

FEW = """
    select count(*)
    from (select i as at from range(5) as t(i)) as few
    asof join marks on marks.at <= few.at
"""


def plan(connection: engine.DuckDBPyConnection) -> str:
    connection.execute("create or replace table marks as select i as at from range(1000) as t(i)")
    return "".join(text for _, text in connection.execute(f"explain {FEW}").fetchall())


def test_joins_by_order_are_sorted_however_few_rows_are_expected() -> None:
    with closing(engine.connect()) as as_it_comes:
        assert "Nested Loop" in plan(as_it_comes), "the engine has changed: nothing to prevent"
    with closing(engine.open_database()) as connection:
        assert "Asof Join" in plan(connection)
    with engine.Workspace() as workspace, closing(workspace.cursor()) as cursor:
        assert "Asof Join" in plan(cursor)


def rounded(value: object) -> object:
    """Return what JSON holds without last digits: threads sum in another order."""
    return json.loads(json.dumps(value), parse_float=lambda digits: f"{float(digits):.10g}")


def test_what_small_tables_are_planned_without_is_there() -> None:
    with closing(engine.open_database()) as connection:
        known = {name for (name,) in connection.execute("from duckdb_optimizers()").fetchall()}
    assert set(engine._FOR_LARGE) <= known


@pytest.mark.parametrize("report", ["passes", "layers", "attention", "anchors"])
def test_small_tables_give_what_large_ones_do(
    report: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(store: Path) -> object:
        # What a file was just read into is small; from the store its size decides.
        command(store, "ingest", TRACE, "--config", CONFIG)
        return rounded(answer(command(store, report, TRACE, "--format", "json")))

    small = shown(tmp_path / "small")
    monkeypatch.setattr(analysis, "_SMALL", -1)
    assert shown(tmp_path / "large") == small


@pytest.fixture
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> list[engine.DuckDBPyConnection]:
    """The databases of a process that has just begun, as they are opened."""
    opened: list[engine.DuckDBPyConnection] = []

    def open_database() -> engine.DuckDBPyConnection:
        opened.append(engine.connect())
        return opened[-1]

    monkeypatch.setattr(engine, "open_database", open_database)
    monkeypatch.setattr(engine, "_opened", [])
    monkeypatch.setattr(engine, "_used", [])
    monkeypatch.setattr(engine, "_little", [False])
    return opened


def test_a_database_opened_early_is_taken_once(
    nothing_open: list[engine.DuckDBPyConnection],
) -> None:
    engine.open_early()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    assert engine.take_database() is nothing_open[0]
    engine.expect_little(False)
    assert len(nothing_open) == 1
    engine.cursor().close()
    assert engine.take_database() is nothing_open[2]
    assert engine._opened == [nothing_open[1]], "what is in use is not given away"


def test_a_database_that_fails_to_open_early_is_opened_when_needed(
    nothing_open: list[engine.DuckDBPyConnection],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    works = engine.open_database

    def fails() -> NoReturn:
        raise engine.OutOfMemoryException

    monkeypatch.setattr(engine, "open_database", fails)
    engine.open_early()

    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", NoThread)
        engine.open_early()
    with pytest.raises(engine.OutOfMemoryException):
        engine.cursor()
    monkeypatch.setattr(engine, "open_database", works)
    engine.cursor().close()
    assert len(nothing_open) == 1
    assert capfd.readouterr() == ("", "")
