"""A user's SQL: one SELECT that neither writes, nor reads outside the store, and that ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from command_line import ROOT

from trace_sql import database
from trace_sql.database import Database
from trace_sql.errors import ExitCode, TraceSqlError
from trace_sql.store import Store

TRACE = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}]}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, files beside it, and links to those from inside it."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "trace.json").write_text(TRACE)
    entry = Store(folder / "store").ingest(folder / "trace.json").trace_id
    inside = Store(folder / "store").entry(entry).folder
    (folder / "secret.csv").write_text("secret\n1\n")
    duckdb.execute(f"copy (select 42 as secret) to '{folder}/secret.parquet'")
    (inside / "link.parquet").symlink_to(folder / "secret.parquet")
    (folder / "store" / "up").symlink_to(folder)
    return folder


@pytest.fixture(scope="module")
def db(folder: Path) -> Iterator[Database]:
    store = Store(folder / "store")
    with Database(store, {entry.trace_id: entry.settings for entry in store.traces()}) as db:
        yield db


NO_SELECT = [
    "",
    ";",
    "-- select 1",
    "/* select 1 */",
    "select 1; select 2",
    "select 1; drop view traces",
    "drop view traces",
    "create table t as select 1",
    "create temp table t as select 1",
    "create macro f() as 1",
    "create or replace view traces as select 1",
    "insert into traces select 1",
    "update traces set name = 'x'",
    "delete from traces",
    "truncate traces",
    "alter table traces rename to x",
    "merge into traces using traces as t on true when matched then delete",
    "copy traces to 'FOLDER/written.csv'",
    "copy (select 1) to 'FOLDER/written.csv'",
    "copy traces from 'FOLDER/secret.csv'",
    "export database 'FOLDER/written'",
    "import database 'FOLDER/written'",
    "attach 'FOLDER/written.db' as a",
    "detach memory",
    "use memory",
    "set memory_limit = '1GB'",
    "set lock_configuration = false",
    "reset memory_limit",
    "pragma enable_profiling",
    "pragma database_list",
    "call enable_logging()",
    "install httpfs",
    "load httpfs",
    "load 'FOLDER/evil.duckdb_extension'",
    "prepare a as select 1",
    "execute a",
    "checkpoint",
    "vacuum",
    "begin",
    "explain analyze select 1",
]
REFUSED = [
    "selec",
    "select 1 into x",
    "select $1",
    "select ?",
    "select\0 1",
    "select getenv('HOME')",
    "from read_text('FOLDER/secret.csv')",
    "from read_blob('FOLDER/secret.csv')",
    "from read_csv('FOLDER/secret.csv')",
    "from read_csv(['FOLDER/secret.csv'])",
    "from read_json('FOLDER/secret.csv')",
    "from read_parquet('FOLDER/secret.parquet')",
    "from read_parquet('file://FOLDER/secret.parquet')",
    "from read_parquet('FOLDER/store/../secret.parquet')",
    "from read_parquet('FOLDER/store/up/secret.parquet')",
    "from read_parquet('FOLDER/store/v*/traces/*/link.parquet')",
    "from parquet_schema('FOLDER/secret.parquet')",
    "from read_duckdb('FOLDER/secret.db')",
    "from sniff_csv('FOLDER/secret.csv')",
    "from 'FOLDER/secret.csv'",
    "from 'FOLDER/store/up/secret.csv'",
    "from glob('FOLDER/*')",
    "from glob('/etc/*')",
    "from read_text('/etc/passwd')",
    "from read_csv('/dev/stdin')",
    "from 'http://example.org/a.parquet'",
    "from 's3://bucket/a.parquet'",
    "from read_text('https://example.org/')",
    "from query('create table t (a int)')",
    "from query('copy (select 1) to ''FOLDER/written.csv''')",
    "from (copy traces to 'FOLDER/written.csv')",
    "with t as (insert into traces values (1) returning *) from t",
    "from enable_logging()",
    "from enable_profiling()",
    "from duckdb_secrets()",
    "select error('no')",
    "from nosuch",
    "from os",
    "from db",
    "from folder",
]


@pytest.mark.parametrize("sql", [*NO_SELECT, *REFUSED])
def test_refused_in_one_line(db: Database, folder: Path, sql: str) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(TraceSqlError) as caught:
        db.ask(sql.replace("FOLDER", str(folder)))
    assert caught.value.exit_code == ExitCode.FAILED
    assert "\n" not in str(caught.value)
    assert ("one SELECT" in str(caught.value)) == (sql in NO_SELECT)
    if "Table with name" in str(caught.value):
        assert str(caught.value).endswith("does not exist! `trace-sql schema` lists the views.")
    assert sorted(folder.rglob("*")) == before
    assert db.ask("select n_events from traces").rows == [(1,)], "the session still answers"


@pytest.mark.parametrize(
    "sql",
    [
        "select 1;",
        "; select 1",
        "-- words\nselect 1 -- ; drop view traces",
        "/* /* nested */ */ select 1 /* ; drop view traces */",
        "with a as (select 1 as b) from a",
        "(select 1)",
        "values (1)",
        "select count(*) from traces",
        "select count(*) from read_parquet('FOLDER/store/v*/traces/*/events.parquet')",
    ],
)
def test_one_select_in_any_dress(db: Database, folder: Path, sql: str) -> None:
    assert db.ask(sql.replace("FOLDER", str(folder))).rows == [(1,)]


@pytest.mark.parametrize("name", ["raw_events", "raw_facts", "raw_losses"])
def test_the_flattened_trace_can_be_asked_alone(db: Database, name: str) -> None:
    ((count,),) = db.ask(f"select count(*) from {name}").rows
    assert (count > 0) == (name != "raw_losses")


def test_what_a_query_may_use(db: Database) -> None:
    def setting(name: str) -> str:
        return str(db.ask(f"select current_setting('{name}')").rows[0][0])

    db.ask("select 1")
    assert setting("temp_directory") == ""
    assert setting("enable_external_access") == "False"
    assert setting("lock_configuration") == "True"
    half, all_of_it = (float(one.split()[0]) for one in (setting("memory_limit"), memory()))
    assert half < 0.7 * all_of_it


def memory() -> str:
    ((text,),) = duckdb.connect().execute("select current_setting('memory_limit')").fetchall()
    return str(text)


def test_an_answer_has_an_end(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOST_VALUES", 200_000)
    assert len(db.ask("select 1, i from range(100000) t(i)").rows) == 100_000
    with pytest.raises(TraceSqlError, match="more than 200000 values"):
        db.ask("from range(1000000000000)")


def test_what_does_not_fit_ends_in_one_line(folder: Path) -> None:
    store = Store(folder / "store")
    with Database(store, {entry.trace_id: entry.settings for entry in store.traces()}) as db:
        db._for_users().connection.execute("set memory_limit = '100MB'")
        with pytest.raises(TraceSqlError, match="Out of Memory") as caught:
            db.ask("select i, random() as r from range(100000000) t(i) order by r")
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process on Windows")
@pytest.mark.parametrize(
    "sql",
    [
        "select sum(a.range * b.range) from range(1000000000) a, range(1000000000) b",
        "with recursive t(i) as (select 1 union all select i + 1 from t) select max(i) from t",
        "select pg_sleep(1000)",
    ],
)
def test_ctrl_c_ends_what_would_not(folder: Path, sql: str) -> None:
    words = [sys.executable, "-m", "trace_sql", "--store", str(folder / "store"), "sql", sql]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        time.sleep(0.9)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (out, err) == ("", "trace-sql: error: interrupted\n")
    assert process.returncode == ExitCode.INTERRUPTED


def test_the_readme_states_the_limits() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"{database.MOST_VALUES / 1e6:.0f} million values", text)
    assert "half of the machine's memory" in text
