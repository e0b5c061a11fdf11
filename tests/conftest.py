"""Options and fixtures that tests share: real and made traces, stores, a way to run commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from attention_lab import Lab
from command_line import CONFIG, TRACE, Run, command
from flattened import Flat, Read, cut_small, flattened_all

from fixtures import Scenario, kind, make, write
from trace_sql.database import Database
from trace_sql.store import Settings, Store

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"

# The same examples each time; `pytest --hypothesis-profile=explore` draws others.
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", derandomize=False, deadline=None)
hypothesis.settings.load_profile("repeat")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the commands print into tests/golden instead of comparing with it",
    )


@dataclass(frozen=True)
class Analysed:
    """A trace in a session of its own."""

    trace_id: str
    database: Database

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self.database.query(sql).dicts()

    @property
    def verdict(self) -> dict[str, Any]:
        return self.rows("from trace_verdicts")[0]

    @property
    def passes(self) -> list[dict[str, Any]]:
        return self.rows("from passes order by pass_no")

    @property
    def activities(self) -> list[dict[str, Any]]:
        """Every activity with its place, in order of gpu_index."""
        return self.rows(
            "select a.*, l.* exclude (trace_id, event_id) from activities as a "
            "join activity_layers as l using (trace_id, event_id) order by gpu_index"
        )


Analyse = Callable[..., Analysed]
Shared = Callable[[str], Path]


@pytest.fixture(scope="session")
def shared() -> Shared:
    """Find a file of the folder with real traces and facts; skip where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"no ../shared/{name}: real traces are not beside this checkout")
        return path

    return find


@pytest.fixture(scope="session")
def oracle(shared: Shared) -> list[dict[str, Any]]:
    """What another tool says of attention in traces: rows with the numbers of one operator each."""
    text = shared("facts/attention/oracle.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


@pytest.fixture(scope="session")
def trace_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that all tests of the run fill, so that a trace is flattened once."""
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture
def analyse(trace_store: Store) -> Iterator[Analyse]:
    """Ingest a file and open a session over it; keywords are fields of Settings."""
    opened: list[Database] = []

    def open_session(path: Path, **settings: Any) -> Analysed:
        trace_id = trace_store.ingest(path).trace_id
        database = Database(trace_store, {trace_id: Settings(**settings)})
        opened.append(database)
        return Analysed(trace_id, database)

    yield open_session
    for database in opened:
        database.__exit__()


@pytest.fixture
def load(analyse: Analyse, tmp_path: Path) -> Callable[..., Analysed]:
    """Write these events, and keys of the document, to a file and open it."""

    def write(*events: dict[str, Any], **document: Any) -> Analysed:
        path = tmp_path / "odd.json"
        path.write_text(json.dumps({**document, "traceEvents": events}), encoding="utf-8")
        return analyse(path)

    return write


@pytest.fixture(params=["one piece", "small pieces"])
def read(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Flatten all documents of a text, whole at once or with seams everywhere."""
    if request.param == "small pieces":
        cut_small(monkeypatch, 30, 20)

    def read_text(raw: bytes) -> list[Flat]:
        (tmp_path / "t.json").write_bytes(raw)
        return flattened_all(tmp_path / "t.json", tmp_path / "out")

    return read_text


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the store that commands under test share."""
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="session")
def run(store: Path) -> Run:
    """Run a command in the shared store."""
    return lambda *words: command(store, *words)


@pytest.fixture(scope="session")
def demo(run: Run) -> str:
    """The id of the demo trace, ingested with its config."""
    result = run("ingest", TRACE, "--config", CONFIG, "--run", "base", "--format", "json")
    (row,) = json.loads(result.stdout)
    return str(row["trace_id"])


@pytest.fixture(scope="session")
def lab(
    trace_store: Store, tmp_path_factory: pytest.TempPathFactory, shared: Callable[[str], Path]
) -> Lab:
    """Answers about attention in a few traces and in changed copies of them."""
    return Lab(trace_store, tmp_path_factory.mktemp("edited"), shared)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Scenario], Path]:
    """Write a trace of three layers."""
    folder = tmp_path_factory.mktemp("made")

    def write_trace(name: str, scenario: Scenario) -> Path:
        path = folder / f"{name}.json"
        if not path.exists():
            dense = kind("sglang_llama_nvidia")
            write(make(dense.model_config(layers=3), dense, scenario), path)
        return path

    return write_trace
