"""Text that attacks whoever shows it does no harm in any command, format or message."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from command_line import Run, answer, check_markdown, command, refused, unsafe
from hostile import KEPT, LAYERS, NAMES, texts, write_config, write_document, write_hostile

from fixtures import Made, Scenario, kind, make, serving
from trace_sql.errors import ExitCode
from trace_sql.output import FORMATS, WIDTH
from trace_sql.progress import Progress
from trace_sql.safe_text import clean

FORMULAS = ("=", "+", "-", "@", "\uff1d")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    store = folder / "st\x1b[31more|<b>"
    return lambda *words: command(store, *words)


@pytest.fixture(scope="module")
def config(folder: Path) -> Path:
    return write_config(folder / "con\x1b[31m|fig<b>\n.json")


@pytest.fixture(scope="module")
def trace(folder: Path, run: Run, config: Path) -> Path:
    path = write_hostile(folder / "ho|st\x1b[31m`ile<b>\u202e[l](u)\n_x_@.json")
    tags = [f"--tag=k{name}={name}" for name in NAMES if name and "=" not in name]
    done = run("ingest", path, "--config", config, f"--run={''.join(NAMES)}", *tags)
    assert done.exit_code == ExitCode.OK, done.stderr
    harmless(done.stdout, "table")
    assert unsafe(done.stderr) == set()
    return path


def columns_of_a_terminal(line: str) -> int:
    return sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in ("W", "F")
        else 1
        for char in line
    )


def harmless(text: str, form: str) -> None:
    assert unsafe(text) == set()
    if form == "json":
        json.loads(text)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) <= 1
        for cell in (cell for row in rows for cell in row):
            if cell.lstrip().startswith(FORMULAS):
                float(cell)
    elif form in ("markdown", "report"):
        check_markdown(text)
    else:
        assert max(map(columns_of_a_terminal, text.splitlines()), default=0) <= WIDTH


ON_TRACE = [
    ["passes", "TRACE"],
    ["layers", "TRACE"],
    ["kernels", "TRACE", "--layer", "1"],
    ["kernels", "TRACE", "--layer", "1", "--compare-layer", "2"],
    ["perfetto", "TRACE", "--pass", "4", "--layers", "1"],
    ["categories", "TRACE", "--pass", "3"],
    ["anchors", "TRACE"],
    ["loops", "TRACE"],
    ["traces"],
    ["model", "CONFIG"],
    ["sql", "TRACE", "from kernels"],
    ["sql", "TRACE", "from events"],
    ["sql", "TRACE", "from traces"],
    ["sql", "TRACE", "select name as \"\x1b[31m|<b>\", '\x1b[31m' from annotations"],
]


@pytest.mark.parametrize("words", ON_TRACE, ids=lambda words: " ".join(words)[:40])
def test_every_answer(run: Run, trace: Path, config: Path, words: list[str]) -> None:
    places = {"TRACE": trace, "CONFIG": config}
    more = ("text", "compute-flow") if words[0] == "kernels" else ()
    for form in (*FORMATS, *more):
        result = run(*(places.get(word, word) for word in words), "--format", form)
        assert result.exit_code == ExitCode.OK, result.stderr
        harmless(result.stdout, form)
        assert unsafe(result.stderr) == set()


def test_a_report(run: Run, trace: Path, folder: Path) -> None:
    result = run("report", trace)
    assert result.exit_code == ExitCode.OK, result.stderr
    harmless(result.stdout, "report")
    path = folder / f"{'r' * 250}.md"
    assert run("report", trace, "-o", path).exit_code == ExitCode.OK
    assert path.read_text(encoding="utf-8") == result.stdout
    failed = run("report", trace, "-o", folder / "\x1b[31m\nno" / "file")
    assert (failed.exit_code, failed.stdout) == (ExitCode.FAILED, "")
    assert failed.stderr.splitlines()[-1].startswith("trace-sql: error: ")
    assert unsafe(failed.stderr) == set()


def test_rules_to_paste(run: Run, trace: Path) -> None:
    for form in FORMATS:
        result = run("categories", trace, "--unclassified", "--format", form)
        assert result.exit_code == ExitCode.OK, result.stderr
        assert unsafe(result.stdout) == set()
    text = run("categories", trace, "--unclassified", "--format", "markdown").stdout
    fence = text.index("```toml\n")
    check_markdown(text[:fence])
    assert re.findall(r"^```.*$", text[fence:], re.MULTILINE) == ["```toml", "```"]


def test_json_gives_every_text_back(run: Run, trace: Path) -> None:
    content = json.loads(trace.read_text())
    sql = "select name, args from events order by event_id"
    rows = answer(run("sql", trace, sql, "--format", "json"))
    assert [row["name"] for row in rows] == [one["name"] for one in content["traceEvents"]]
    read = [None if row["args"] is None else json.loads(row["args"]) for row in rows]
    assert read == [one.get("args") for one in content["traceEvents"]]
    (row,) = answer(run("sql", trace, "select * from traces", "--format", "json"))
    assert row["run"] == "".join(NAMES)
    assert row["tags"] == {f"k{name}": name for name in NAMES if name and "=" not in name}
    assert set(NAMES) <= set(texts(json.loads(row["warnings"])))


def test_csv_gives_every_text_back_as_text(run: Run, trace: Path) -> None:
    sql = "select name from events where ph = 'i' and cat is not null order by event_id"
    text = run("sql", trace, sql, "--format", "csv").stdout
    read = [row["name"] for row in csv.DictReader(io.StringIO(text), restval="")]
    # A line without a character is the name without one, which csv readers leave out.
    expected = [name for name in NAMES if name]
    assert [one.removeprefix("'") for one in read if one] == [
        clean(one).removeprefix("'") for one in expected
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["passes", "TRACE", "--num-layers", "7"], ExitCode.REFUSED),
        (["layers", "TRACE", "--anchor-kernel", "EVIL"], ExitCode.REFUSED),
        (["layers", "TRACE", "--pid", "EVIL"], ExitCode.REFUSED),
        (["layers", "TRACE", "--phase", "EVIL"], ExitCode.FAILED),
        (["layers", "TRACE", "--profile", "EVIL"], ExitCode.USAGE),
        (["layers", "TRACE", "--config", "EVIL"], ExitCode.USAGE),
        (["layers", "TRACE", "--pass", "EVIL"], ExitCode.USAGE),
        (["layers", "EVIL"], ExitCode.USAGE),
        (["ingest", "EVIL"], ExitCode.USAGE),
        (["ingest", "TRACE", "--tag", "EVIL"], ExitCode.USAGE),
        (["model", "TRACE"], ExitCode.BAD_INPUT),
        (["schema", "EVIL"], ExitCode.USAGE),
        (["profiles", "EVIL"], ExitCode.USAGE),
        (["sql", "EVIL"], ExitCode.FAILED),
        (["sql", 'from "EVIL"'], ExitCode.FAILED),
        (["sql", "select error('EVIL')"], ExitCode.FAILED),
        (["sql", "select 'EVIL'::int"], ExitCode.FAILED),
        (["EVIL"], ExitCode.USAGE),
        (["layers", "--EVIL"], ExitCode.USAGE),
    ],
    ids=str,
)
@pytest.mark.parametrize("evil", ["\x1b[31m|<b>\r\nnext\u202e\x9b\t", "caf\udce9\udcff"])
def test_every_refusal(run: Run, trace: Path, words: list[str], code: ExitCode, evil: str) -> None:
    result = run(*(word.replace("EVIL", evil).replace("TRACE", str(trace)) for word in words))
    refused(result, code)
    assert unsafe(result.stderr) == set()


def test_names_that_are_no_utf8(folder: Path, run: Run) -> None:
    done = run("sql", "select 'caf\udce9' as x", "--format", "json")
    assert answer(done) == [{"x": "caf\\xe9"}]
    config = write_config(folder / "conf\udcff.json")
    path = folder / "tr\udcffce.json"
    path.write_text('{"traceEvents": [{"ph": "i", "name": "a", "ts": 1}]}')
    assert run("ingest", path, "--run", "\udcff", "--tag", "\udcff=\udcfe").exit_code == 0
    sql = "select name, run, tags from traces where name like 'tr%'"
    (row,) = answer(run("sql", sql, "--format", "json"))
    assert row == {"name": "tr\\xffce", "run": "\\xff", "tags": {"\\xff": "\\xfe"}}
    assert run("model", config).exit_code == ExitCode.OK
    refused(command(folder / "st\udcff", "traces"), ExitCode.USAGE, "UTF-8")


def test_halves_of_pairs(run: Run, made: Made, tmp_path: Path) -> None:
    for event in made.events:
        if event.get("cat") == "user_annotation":
            event["name"] += "\ud83d"
    made.metadata["deviceProperties"][0]["name"] = "GPU\udfff"
    made.metadata["WARNING"] = ["\ud800"]
    path = write_document(tmp_path / "half.json", made.metadata, made.events)
    config = tmp_path / "config.json"
    dense = kind("sglang_llama_nvidia").model_config(layers=LAYERS)
    config.write_text(json.dumps({**dense, "hidden_act": "\ud800", "\udfff": 1}))
    for words in (["passes", path], ["report", path], ["traces"], ["model", config]):
        more = () if words[0] in ("traces", "model") else ("--config", config)
        result = run(*words, *more)
        assert result.exit_code == ExitCode.OK, result.stderr
        assert unsafe(result.stdout + result.stderr) == set()
    sql = "select distinct name from annotations where name like '%EXTEND%'"
    names = [row["name"] for row in answer(run("sql", path, sql, "--format", "json"))]
    assert f"{min(names)}\ufffd" in names


def test_a_progress_line_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    with Progress("ingesting " + "".join(NAMES)) as progress:
        progress._start -= 1
        progress._last -= 1
        progress.bytes(1, 10)
    begin, *lines = terminal.getvalue().split("\r\x1b[K")
    assert (begin, lines[-1], len(lines)) == ("", "", 2)
    assert lines[0].endswith(" 10 % of 0.0 MB, 0.0 MB/s, 9 s left")
    assert unsafe(lines[0]) == set()
    assert len(lines[0]) < 60


# Names of megabytes, and stacks and arguments of 2,000 levels.

BIG = [
    "big_" + "a" * 2_000_000,
    "void ns::k<" * 10_000 + ">" * 10_000,
    "核" * 50_000,
    "d" + "1" * 50_000 + "_end",
]
COMMANDS = [
    ["passes"],
    ["layers"],
    ["kernels", "--layer", "1"],
    ["kernels", "--layer", "1", "--compare-layer", "2"],
    ["kernels", "--layer", "1", "--format", "compute-flow"],
    ["categories"],
    ["categories", "--unclassified"],
    ["anchors"],
    ["perfetto"],
    ["report"],
]


@pytest.fixture
def made() -> Made:
    dense = kind("sglang_llama_nvidia")
    config = dense.model_config(layers=LAYERS)
    return make(config, dense, Scenario(passes=serving(1, 1, 3), frames="layers"))


def run_all(run: Run, path: Path) -> None:
    for words in COMMANDS:
        result = run(words[0], path, "--num-layers", LAYERS, *words[1:])
        assert result.exit_code == ExitCode.OK, (words, result.stderr)
        assert len(result.stdout) < 200_000, words
        assert max(map(len, result.stderr.splitlines()), default=0) < 10_000


def test_names_of_megabytes(run: Run, made: Made, tmp_path: Path) -> None:
    named = iter(BIG)
    for event in made.events:
        if event.get("cat") == "kernel" and not KEPT.search(event["name"]):
            event["name"] = next(named, event["name"])
    assert next(named, None) is None
    path = write_document(tmp_path / "big.json", made.metadata, made.events)
    run_all(run, path)
    sql = "select distinct name from kernels where length(name) > 10000"
    rows = answer(run("sql", path, sql, "--format", "json"))
    assert {row["name"] for row in rows} == set(BIG)
    lines = run("sql", path, sql).stdout.splitlines()
    assert len(lines) < 400
    assert max(map(columns_of_a_terminal, lines)) <= WIDTH


def test_stacks_of_two_thousand_frames(run: Run, made: Made, tmp_path: Path) -> None:
    outer = next(event for event in made.events if event.get("cat") == "python_function")
    end = max(event["ts"] + event.get("dur", 0) for event in made.events)
    for depth in range(2000):
        start = outer["ts"] - 4_000_000 + 1000 * depth
        args = {"Python id": 100_000 + depth, "Python parent id": 99_999 + depth or None}
        frame = {**outer, "name": f"deep.py({depth}): f", "ts": start, "args": args}
        made.events.append({**frame, "dur": end - start + 4_000_000 - 1000 * depth})
    run_all(run, write_document(tmp_path / "stack.json", made.metadata, made.events))


def test_arguments_of_two_thousand_levels(run: Run, made: Made, tmp_path: Path) -> None:
    path = tmp_path / "nested.json"
    for event in made.events[::40]:
        event.setdefault("args", {})["deep"] = "LIST" if len(event["name"]) % 2 else "OBJECT"
    text = write_document(path, made.metadata, made.events).read_text()
    text = text.replace('"LIST"', "[" * 2000 + "]" * 2000)
    path.write_text(text.replace('"OBJECT"', '{"a": ' * 2000 + "1" + "}" * 2000))
    run_all(run, path)
