"""Statements parsed ahead of their use are the ones that are used."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from command_line import CONFIG, TRACE, command

from trace_sql import engine, plan, statements
from trace_sql.analysis import creations
from trace_sql.database import _FIRST_TABLE, _SPLIT, _UNSPLITTABLE
from trace_sql.errors import ExitCode
from trace_sql.plan import settings_key
from trace_sql.settings import Settings


def finish() -> None:
    """Wait until what is parsed beside is done."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def test_what_splits_a_trace_is_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreseen = set(creations(Settings(), (_UNSPLITTABLE, *_SPLIT, _FIRST_TABLE)))
    run: set[str] = set()
    original = statements.parsed

    def record(connection: engine.DuckDBPyConnection, text: str) -> object:
        run.add(text)
        return original(connection, text)

    monkeypatch.setattr("trace_sql.analysis.parsed", record)
    assert command(tmp_path, "passes", TRACE).exit_code == ExitCode.OK
    # Of a session's own tables one is not the analysis's.
    assert {text for text in run - foreseen if "raw_settings" not in text} == set()
    assert len(run & foreseen) > 60


def test_a_foreseen_statement_runs_as_its_text_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_parsed", {})
    text = "select ?::BIGINT + 1"
    statements.foresee(lambda: iter([text, "no SQL", "select 2"]))
    statements.parse_foreseen()
    finish()
    assert set(statements._parsed) == {text}, "a fault ends it, and is told where it is run"
    with closing(engine.open_database()) as connection, closing(connection.cursor()) as other:
        for number, one in enumerate((connection, other, connection)):
            statement = statements.parsed(one, text)
            assert one.execute(statement, [number]).fetchall() == [(number + 1,)]
        with pytest.raises(engine.Error, match="no SQL|Parser"):
            statements.parsed(connection, "no SQL")


def test_no_more_statements_are_kept_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_parsed", {})
    monkeypatch.setattr(statements, "_MOST", 3)
    with closing(engine.open_database()) as connection:
        for number in range(10):
            statement = statements.parsed(connection, f"select {number}")
            assert connection.execute(statement).fetchall() == [(number,)]
            assert len(statements._parsed) <= 3


def test_a_config_is_foreseen_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Settings] = []
    original = plan.make_plan

    def record(trace_id: str, settings: Settings) -> object:
        asked.append(settings)
        return original(trace_id, settings)

    monkeypatch.setattr("trace_sql.analysis.make_plan", record)
    assert command(tmp_path, "passes", TRACE, "--config", CONFIG).exit_code == ExitCode.OK
    finish()
    assert len(asked) == 2
    assert len({settings_key(one) for one in asked}) == 1
    assert all(one.config for one in asked)


def test_what_cannot_be_split_costs_no_more_views(tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    trace.write_text('[{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 1}]')
    for _ in range(2):
        assert command(tmp_path / "store", "passes", trace).exit_code == ExitCode.EMPTY
        made = {path.stem for path in (tmp_path / "store").rglob("*.parquet")}
        assert "unsplittable" in made
        assert not made & {"passes", "verdicts", "activity_layers"}
