"""The house rules a reader relies on: light imports, one direction, documents that are true."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from trace_sql import profile
from trace_sql.cli import main
from trace_sql.database import public_views
from trace_sql.errors import ExitCode
from trace_sql.profile import load_profiles
from trace_sql.views import LAYERS, load_views

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "trace_sql"
MOST_LINES = 350
HEAVY = ("duckdb", "_duckdb", "pyarrow", "jinja2", "numpy", "isal")
DEMO_TRACE = "fixtures/demo/gpt-oss-TP-0.trace.json.gz"
DEMO_CONFIG = "fixtures/demo/config.json"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def python(*args: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], cwd=folder, capture_output=True, text=True, check=True
    )


# Imports.


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, trace_sql.cli; print([m for m in {HEAVY} if m in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["passes", "layers"])
def test_a_warm_answer_needs_neither_arrow_nor_templates(command: str, tmp_path: Path) -> None:
    run = ["-m", "trace_sql", "--store", str(tmp_path), command, DEMO_TRACE]
    run += ["--config", DEMO_CONFIG]
    cold, warm = (python("-X", "importtime", *run) for _ in range(2))

    def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
        names = re.findall(r"^import time:.*\|\s*(\w+)$", done.stderr, re.MULTILINE)
        return set(names) & set(HEAVY)

    # Templates are rendered once for all traces.
    assert "_duckdb" in loaded(cold), "the first answer must need it"
    assert loaded(warm) & {"pyarrow", "jinja2"} == set()
    assert warm.stdout == cold.stdout


@pytest.mark.parametrize(
    "words", ["--help", "passes --help", "--version", "schema passes", "hardware --format json"]
)
def test_what_needs_no_engine_does_not_wait_for_one(words: str) -> None:
    done = python("-X", "importtime", "-m", "trace_sql", *words.split())
    assert done.stdout
    assert not re.search(r"\|\s*(_duckdb|duckdb|pyarrow)$", done.stderr, re.MULTILINE)


def layers_of_imports() -> list[str]:
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    return [name.removeprefix("trace_sql.") for name in contracts[0]["layers"]]


def test_imports_point_down() -> None:
    linter = shutil.which("lint-imports", path=Path(sys.executable).parent)
    linter = linter or shutil.which("lint-imports")
    assert linter, "import-linter is in the dev extra"
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_import_order_names_every_module() -> None:
    # The linter says nothing of a module that stands in no layer.
    assert sorted(layers_of_imports()) == sorted(path.stem for path in PACKAGE.glob("[!_]*.py"))


# Files.


def source_files() -> Iterator[Path]:
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            yield path
    for folder in ("trace_sql", "sql", "profiles", "fixtures", "tests", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in {".gz", ".pyc"}:
                yield path


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_a_module_is_short_enough_to_read(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= MOST_LINES


PLACES = re.compile(
    r"(?<![\w.])/(?:work|tmp|home|root|Users|mnt|workspace)/\w"  # where somebody's checkout is
    r"|[A-Z]:\\Users"
    r"|pypi\.[a-z]+\b|pythonhosted\.|artifactory|index-[u]rl|find-[l]inks"  # whose registry
    r"|\blocalhost\b|\b127\.0\.0\.1\b|\b10\.\d+\.\d+\.\d+\b"
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in source_files()
        for match in PLACES.finditer(path.read_text(encoding="utf-8"))
        if path != Path(__file__).resolve()
    ]
    assert found == []


def test_the_search_for_machines_finds_one() -> None:
    assert PLACES.search("see /" + "home/me/trace.json")
    assert PLACES.search("https://py" + "pi.org/simple")
    assert not PLACES.search("../shared/traces and traces/home/x")


# Documents.


def commands(group: click.Group = main, prefix: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found |= commands(command, f"{prefix}{name} ")
        else:
            found[f"{prefix}{name}"] = command
    return found


COMMANDS = commands()


def console_lines(name: str) -> list[str]:
    """Return the commands of a document's console blocks, continued lines joined."""
    blocks = re.findall(r"^```console\n(.*?)^```$", text(name), re.MULTILINE | re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ trace-sql")]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout to the examples, with a store of its own."""
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACE_SQL_STORE", str(tmp_path / "store"))
    return tmp_path


def invoke(line: str) -> Result:
    words = shlex.split(line)
    assert words[0] == "trace-sql"
    return CliRunner().invoke(main, words[1:])


DOCUMENTS = sorted(
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"))
)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if console_lines(name)])
def test_examples_of_a_document_run_as_they_stand(name: str, workplace: Path) -> None:
    for line in console_lines(name):
        result = invoke(line)
        assert result.exit_code == ExitCode.OK, f"{line}\n{result.output}"
        # What is written elsewhere needs no table, nor has the demo loops.
        silent = {"-o", "--output", "loops"} & {*line.split()}
        assert result.stdout or silent, f"{line}: says nothing"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_shows_an_example_of_each_command(command: str) -> None:
    start = f"trace-sql {command}"
    assert any(line == start or line.startswith(f"{start} ") for line in console_lines("README.md"))
    assert f"`{start}" in text("README.md"), "it is in no list of commands"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_in_an_example(command: str) -> None:
    help_text = COMMANDS[command].help or ""
    assert f"trace-sql {command}" in help_text.partition("Example:")[2]
    shown = invoke(f"trace-sql {command} --help").stdout
    assert max(map(len, shown.splitlines())) <= 100


OPTIONS = {
    option
    for command in (main, *COMMANDS.values())
    for parameter in command.params
    if isinstance(parameter, click.Option)
    for option in (*parameter.opts, *parameter.secondary_opts)
}


def test_the_readme_names_each_option() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text("README.md")))
    assert {option for option in OPTIONS if option.startswith("--")} - named == {"--version"}


def test_documents_name_no_option_that_is_gone() -> None:
    options = OPTIONS | {"--help"}
    named = {
        option
        for code in (*re.findall(r"`([^`\n]+)`", text("README.md")), *console_lines("README.md"))
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)
    }
    assert named - options == set()


def test_the_readme_lists_the_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| \S", text("README.md"), re.MULTILINE)
    assert sorted(map(int, rows)) == sorted(ExitCode)


def test_profiles_are_listed_by_the_command_and_named_in_their_readme() -> None:
    shown = {row["name"] for row in json.loads(invoke("trace-sql profiles --format json").stdout)}
    assert {name for name, one in load_profiles().items() if one.resolved_slots} == shown
    listed = set(re.findall(r"^\| `(\w+)\.toml` \|", text("profiles/README.md"), re.MULTILINE))
    assert listed
    assert listed - set(load_profiles()) == set(), "a file that is gone"


def test_each_key_of_a_profile_is_in_its_readme() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", text("profiles/README.md")))))
    keys = {key for keys in profile._KEYS.values() for key in keys.split()}
    assert keys - named == set()


def test_the_architecture_names_each_view_of_the_window() -> None:
    named = set(re.findall(r"`(\w+)`", text("ARCHITECTURE.md")))
    assert {view.name for view in load_views().values() if view.layer == "window"} - named == set()


def test_each_public_view_is_in_a_readme() -> None:
    listed = set(re.findall(r"`(\w+)`", text("README.md") + text("sql/README.md")))
    assert {view.name for view in public_views()} - listed == set()


def test_the_sql_readme_names_views_in_their_layers() -> None:
    listed = text("sql/README.md").partition("| layer |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", listed, re.MULTILINE)
    assert [layer for layer, _ in rows] == list(LAYERS)
    named = {name: layer for layer, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert (
        named.items() - {view.name: view.layer for view in load_views().values()}.items() == set()
    )


def test_the_package_readme_names_each_module() -> None:
    rows = re.findall(r"^\| `(\w+\.py)` \|", text("trace_sql/README.md"), re.MULTILINE)
    assert sorted(rows) == sorted(path.name for path in PACKAGE.glob("[!_]*.py"))
    ordered = [name for name in layers_of_imports() if f"{name}.py" in rows]
    assert [row.removesuffix(".py") for row in rows] == ordered, "not in the order of imports"


def test_the_tests_readme_names_each_module() -> None:
    named = set(re.findall(r"`(\w+\.py)`", text("tests/README.md")))
    assert named == {path.name for path in (ROOT / "tests").glob("*.py")}


def test_the_tests_that_hold_odd_inputs_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", text("tests/ODD_INPUTS.md")))
    assert named - {path.stem for path in (ROOT / "tests").glob("test_*.py")} == set()


def test_schema_documents_each_public_view() -> None:
    shown = json.loads(invoke("trace-sql schema --format json").stdout)
    assert [row["view"] for row in shown] == [view.name for view in public_views()]
    for view in public_views():
        columns = json.loads(invoke(f"trace-sql schema {view.name} --format json").stdout)
        promised = [(c.name, c.type, c.unit, c.meaning) for c in view.contract.columns]
        assert [tuple(row.values()) for row in columns] == promised
        assert view.contract.summary[:40] in invoke(f"trace-sql schema {view.name}").stdout
