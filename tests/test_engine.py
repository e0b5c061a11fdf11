"""The engine as all queries find it."""

from __future__ import annotations

from contextlib import closing

from trace_sql import engine

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
