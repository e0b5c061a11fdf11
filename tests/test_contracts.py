"""Every view keeps what its head promises: names, types, order, layer, grain."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fixtures import Scenario, kind, make, serving, write
from fixtures.__main__ import DEMO
from trace_sql.analysis import STORED_TABLES, create_table
from trace_sql.base_tables import BASE_TABLES, HARDWARE, ON_DEMAND
from trace_sql.contract import ContractError, parse_contract
from trace_sql.database import Database, public_views
from trace_sql.macros import macro_names, make_macros
from trace_sql.parameters import parameters
from trace_sql.profile import KERNELS, load_profiles
from trace_sql.resources import data_folder
from trace_sql.store import Settings, Store
from trace_sql.views import LAYERS, View, load_views, ordered, render, roots, sources

VIEWS = load_views()
STORE_TABLES = {"raw_events", "raw_losses", "raw_facts", "raw_settings"}
SESSION_TABLES = {*STORE_TABLES, *STORED_TABLES, *ON_DEMAND}
"""Base tables that a query session has."""
MOST_LINES = 120

each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@cache
def rendered(profile: str) -> dict[str, str]:
    values = parameters("trace", Settings(profile=profile)).values
    return {view.name: render(view, values) for view in ordered(VIEWS)}


def over_nothing(profile: str, names: Iterable[str] = VIEWS) -> duckdb.DuckDBPyConnection:
    """Create views over empty typed tables, kept ones as tables as the analysis does."""
    connection = duckdb.connect()
    make_macros(connection, " ".join(macro_names()), set())
    for table, columns in BASE_TABLES.items():
        create_table(connection, table, columns, [])
    for view in ordered(names):
        kept = "table" if view.keep else "view"
        connection.execute(f"create {kept} {view.name} as {rendered(profile)[view.name]}")
    return connection


@pytest.fixture(scope="module")
def empty() -> Iterator[duckdb.DuckDBPyConnection]:
    with contextlib.closing(over_nothing("generic")) as connection:
        yield connection


@dataclass(frozen=True)
class Reads:
    """What a SELECT says it reads, by DuckDB's own parser."""

    ctes: frozenset[str]
    relations: frozenset[str]


@cache
def reads(name: str) -> Reads:
    with contextlib.closing(duckdb.connect()) as connection:
        row = connection.execute(
            "select json_serialize_sql(?::varchar)", [rendered("generic")[name]]
        ).fetchone()
    assert row
    tree = json.loads(row[0])
    assert not tree["error"], tree.get("error_message")
    ctes: set[str] = set()
    relations: set[str] = set()
    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                relations.add(node["table_name"])
            ctes.update(entry["key"] for entry in node.get("cte_map", {}).get("map", ()))
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
    return Reads(frozenset(ctes), frozenset(relations - ctes))


# The file.


def test_each_sql_file_is_a_view_of_a_known_layer() -> None:
    folder = data_folder("sql")
    found = sorted(path.relative_to(folder) for path in folder.rglob("*.sql"))
    views = [Path(view.layer, f"{view.name}.sql") for view in VIEWS.values()]
    assert found == sorted([*views, *(Path("macros", f"{name}.sql") for name in macro_names())])


@each_view
def test_a_file_opens_with_its_contract(view: View) -> None:
    assert view.text.startswith("-- One row "), "the first sentence says what one row is"
    contract = view.contract
    assert contract.keep == view.keep
    assert contract.keep in {"", "yes", "store", "session"}
    names = [column.name for column in contract.columns]
    assert len(names) == len(set(names)), "two columns of one name"
    assert view.text.count("\n") <= MOST_LINES, "split it in two views"


@each_view
def test_times_are_whole_nanoseconds_and_only_means_are_not(view: View) -> None:
    for column in view.contract.columns:
        if column.unit == "ns" and not column.name.startswith("avg_"):
            assert column.type == "BIGINT", column.name
        elif column.unit != "-":
            assert column.type in {"BIGINT", "DOUBLE"}, column.name


@pytest.mark.parametrize(
    "head",
    [
        "select 1",
        "-- One row a trace.\n--\n-- trace_id  VARCHAR  -  the trace\nselect 1",
        "-- grain: trace_id\n--\n-- trace_id  VARCHAR  -  the trace\nselect 1",
        "-- One row a trace.\n-- grain: trace_id\nselect 1",
        "-- One row a pass.\n-- grain: pass_no\n--\n-- trace_id  VARCHAR  -  the trace\n",
        "-- One row a trace.\n-- grain: trace_id\n--\n-- trace_id  VARCHAR  the trace\n",
        "-- One row a trace.\n-- grain: wall_ns\n--\n-- wall_ns  BIGINT  -  its wall\n",
        "-- One row a trace.\n-- grain: wall\n--\n-- wall  BIGINT  ns  its wall\n",
        "-- One row a trace.\n-- grain: wall_ms\n--\n-- wall_ms  DOUBLE  ns  its wall\n",
    ],
    ids=["none", "grain", "sentence", "columns", "unknown", "fields", "no unit", "name", "wrong"],
)
def test_a_head_that_breaks_the_format_is_refused(head: str) -> None:
    with pytest.raises(ContractError, match="seen"):
        parse_contract("seen", head)


# What a view reads.


@each_view
def test_a_view_reads_its_own_or_earlier_layers(view: View) -> None:
    for name in reads(view.name).relations:
        assert name in VIEWS or name in BASE_TABLES, f"{name} is neither view nor base table"
        if name in VIEWS:
            layer = VIEWS[name].layer
            assert LAYERS.index(layer) <= LAYERS.index(view.layer), f"{name} is of {layer}/"
            assert layer != "report" or view.layer == "report"


@each_view
def test_a_cte_never_has_the_name_of_a_view_or_table(view: View) -> None:
    assert not reads(view.name).ctes & {*VIEWS, *BASE_TABLES}


@each_view
def test_the_order_of_views_rests_on_all_they_read(view: View) -> None:
    # The quick reading that orders views must agree with the real parser.
    known = {*VIEWS, *BASE_TABLES}
    assert sources(view.name) & known == reads(view.name).relations


@pytest.mark.parametrize(
    "name",
    [
        view.name
        for view in VIEWS.values()
        if view.keep in ("", "session") or roots(view.name) & set(HARDWARE)
    ],
)
def test_a_view_that_a_session_may_compute_needs_only_what_it_has(name: str) -> None:
    view = VIEWS[name]
    assert not view.is_template, "a session knows no template values"
    public = {other.name for other in public_views()}
    assert reads(view.name).relations <= public | SESSION_TABLES


@pytest.mark.parametrize(
    "name", [view.name for view in VIEWS.values() if view.keep in ("yes", "store")]
)
def test_a_kept_view_reads_only_what_the_key_of_its_result_covers(name: str) -> None:
    assert not roots(name) & {"raw_settings", "trace_pairs"}


def test_every_view_kept_for_the_analysis_alone_is_read_by_it() -> None:
    stored = [view.name for view in VIEWS.values() if view.keep == "store"]
    needed = {view.name for view in ordered(stored)}
    assert {view.name for view in VIEWS.values() if view.keep == "yes"} - needed == set()


def test_every_public_view_tells_traces_apart() -> None:
    without = [view.name for view in public_views() if view.contract.grain[0] != "trace_id"]
    assert without == []


# Names, types, order.


@each_view
def test_columns_are_what_the_contract_says(view: View, empty: duckdb.DuckDBPyConnection) -> None:
    described = empty.execute(f"describe {view.name}").fetchall()
    promised = [(column.name, column.type) for column in view.contract.columns]
    assert [(name, kind) for name, kind, *_ in described] == promised


@each_view
def test_a_view_over_nothing_is_empty(view: View, empty: duckdb.DuckDBPyConnection) -> None:
    # Binding is not running: a cast or a list index can still fail.
    assert empty.execute(f"from {view.name}").fetchall() == []


@pytest.mark.parametrize("profile", sorted(set(load_profiles()) - {KERNELS, "generic"}))
def test_templates_render_and_bind_for_every_profile(profile: str) -> None:
    templates = [view.name for view in VIEWS.values() if view.is_template]
    with contextlib.closing(over_nothing(profile, templates)) as connection:
        for name in templates:
            assert connection.execute(f"from {name}").fetchall() == []


# Grain, on traces.


@dataclass(frozen=True)
class Stored:
    """A trace in a store, and the settings to analyse it with."""

    store: Store
    trace_id: str
    settings: Settings


def made_graph(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Replayed graphs, cut at the start, with work of another thread beside and behind."""
    model = kind("sglang_qwen3_amd")
    config = model.model_config(layers=4)
    scenario = Scenario(
        passes=serving(cold=1, growing=1, steady=2),
        launch="graph",
        cut_start=40,
        noise_thread=3,
        noise_after=2,
    )
    return write(make(config, model, scenario), folder / "graph.json.gz"), config


def made_eager(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Eager passes with frames, collectives on a second stream, cut at the end."""
    model = kind("vllm_gptoss_nvidia")
    config = model.model_config(layers=4)
    scenario = Scenario(
        passes=serving(cold=1, growing=1, steady=2),
        world_size=2,
        side="late",
        frames="modules",
        cut_end=60,
    )
    return write(make(config, model, scenario), folder / "eager.json.gz"), config


def made_refused(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Passes with boundary kernels missing, which fit no reading."""
    model = kind("hf_qwen2_nvidia")
    config = model.model_config(layers=4)
    scenario = Scenario(passes=serving(cold=1, growing=1, steady=1), tamper="thin")
    return write(make(config, model, scenario), folder / "refused.json.gz"), config


def demo(_: Path) -> tuple[Path, dict[str, Any]]:
    config = json.loads((DEMO / "config.json").read_text(encoding="utf-8"))
    return DEMO / "gpt-oss-TP-0.trace.json.gz", config


TRACES = {"demo": demo, "graph": made_graph, "eager": made_eager, "refused": made_refused}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stored]:
    folder = tmp_path_factory.mktemp("grain")
    store = Store(folder / "store")
    stored = {}
    for name, trace in TRACES.items():
        path, config = trace(folder)
        trace_id = store.ingest(path, Settings(config=config)).trace_id
        stored[name] = Stored(store, trace_id, store.settings(trace_id))
    return stored


def faults(ask: Any, view: View) -> list[str]:
    """Return what contradicts the view's columns or grain; `ask(sql)` gives rows."""
    contract = view.contract
    found = []
    described = [row[0] for row in ask(f"describe {view.name}")]
    if described != [column.name for column in contract.columns]:
        found.append(f"{view.name}: columns {described}")
    grain = ", ".join(contract.grain)
    if rows := ask(
        f"select {grain}, count(*) from {view.name} group by all having count(*) > 1 limit 3"
    ):
        found.append(f"{view.name}: not unique by ({grain}): {rows}")
    for column in contract.columns:
        if column.name in contract.grain and "NULL" not in column.meaning:
            (count,) = ask(f"select count(*) from {view.name} where {column.name} is null")[0]
            if count:
                found.append(f"{view.name}: {column.name} is NULL in {count} rows")
    return found


@pytest.mark.parametrize("trace", TRACES)
def test_grain_holds_for_every_view_of_a_trace(trace: str, traces: dict[str, Stored]) -> None:
    stored = traces[trace]
    entry = stored.store.entry(stored.trace_id)
    given = parameters(stored.trace_id, stored.settings)
    with contextlib.closing(duckdb.connect()) as connection:
        make_macros(connection, " ".join(macro_names()), set())
        for table, columns in BASE_TABLES.items():
            create_table(connection, table, columns, given.rows.get(table, []))
        connection.execute(
            "insert into raw_events by name "
            "select * exclude (file_row_number), file_row_number as event_id "
            f"from read_parquet('{entry.events_path}', file_row_number = true)"
        )
        connection.execute(f"insert into raw_facts by name from '{entry.facts_path}'")
        connection.execute(f"insert into raw_settings (trace_id) values ('{stored.trace_id}')")
        found = []
        for view in ordered(VIEWS):
            kept = "table" if view.keep else "view"
            sql = render(view, given.values)
            connection.execute(f"create {kept} {view.name} as {sql}")
            found += faults(lambda sql: connection.execute(sql).fetchall(), view)
    assert found == []


def test_grain_holds_in_a_session_over_all_traces(traces: dict[str, Stored]) -> None:
    store = next(iter(traces.values())).store
    chosen = {stored.trace_id: stored.settings for stored in traces.values()}
    with Database(store, chosen) as database:
        # Named together, so that each trace is analysed once and not once a view.
        database.query(f"select 1 -- {' '.join(view.name for view in public_views())}")
        found = [
            fault
            for view in public_views()
            for fault in faults(lambda sql: database.query(sql).rows, view)
        ]
        seen = database.query("select distinct trace_id, status = 'refused' from passes").rows
    assert found == []
    split = {stored.trace_id for name, stored in traces.items() if name != "refused"}
    assert {trace_id for trace_id, refused in seen if not refused} == split
    assert {trace_id for trace_id, refused in seen if refused} == set(chosen) - split


def test_a_view_of_one_trace_does_not_change_beside_others(traces: dict[str, Stored]) -> None:
    store = next(iter(traces.values())).store
    chosen = {stored.trace_id: stored.settings for stored in traces.values()}
    differing = []
    with Database(store, chosen) as together:
        for stored in traces.values():
            with Database(store, {stored.trace_id: stored.settings}) as alone:
                for view in public_views():
                    # Sums of doubles depend on the order in which threads meet them.
                    columns = ", ".join(
                        f"round({column.name}, 6)" if column.type == "DOUBLE" else column.name
                        for column in view.contract.columns
                    )
                    sql = (
                        f"select count(*), bit_xor(hash(({columns})::varchar)) "
                        f"from {view.name} where trace_id = '{stored.trace_id}'"
                    )
                    if together.query(sql).rows != alone.query(sql).rows:
                        differing.append((view.name, stored.trace_id))
    assert differing == []


def test_grain_names_columns_that_a_person_can_join_by() -> None:
    # Joins go by names, so one name must mean one type everywhere.
    types: dict[str, set[str]] = {}
    for view in VIEWS.values():
        for column in view.contract.columns:
            if column.name in view.contract.grain:
                types.setdefault(column.name, set()).add(column.type)
    assert {name: kinds for name, kinds in types.items() if len(kinds) > 1} == {}


def test_heads_are_laid_out_in_columns() -> None:
    # Two blanks divide fields; a tab or a single one would join two of them in silence.
    for view in VIEWS.values():
        for line in view.text.splitlines():
            if line.startswith("--"):
                assert not re.search(r"\t", line), f"{view.name}: {line}"
