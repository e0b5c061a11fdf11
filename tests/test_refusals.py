"""Questions without an answer: one line on stderr, nothing on stdout, the documented exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import CONFIG, DEMO, TRACE, Run, refused

from trace_sql.cli import main
from trace_sql.errors import ExitCode


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (b"hello\n", ExitCode.BAD_INPUT, "byte 0"),
        (b"", ExitCode.BAD_INPUT, "empty"),
        (b'{"a":', ExitCode.BAD_INPUT, "truncated"),
        (b'{"schemaVersion": 1}', ExitCode.BAD_INPUT, "traceEvents"),
        (b'{"traceEvents": []}', ExitCode.EMPTY, "no device activity"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}',
            ExitCode.EMPTY,
            "no device activity",
        ),
    ],
)
@pytest.mark.parametrize("command", ["passes", "layers", "perfetto", "report"])
def test_a_file_that_holds_no_passes(
    run: Run, tmp_path: Path, command: str, content: bytes, code: ExitCode, part: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    refused(run(command, path), code, "odd", part)


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["passes", "missing.json"], ExitCode.USAGE, ["missing.json", "no such file"]),
        (["passes", "a/b"], ExitCode.USAGE, ["a/b", "no such file"]),
        (["passes", str(DEMO)], ExitCode.USAGE, ["folder", "trace-sql ingest"]),
        (["passes", "nosuch"], ExitCode.USAGE, ["'nosuch'", "gpt-oss-TP-0"]),
        (["passes"], ExitCode.USAGE, ["TRACE", "trace-sql passes --help"]),
        (["passes", "DEMO", "--foo"], ExitCode.USAGE, ["--foo", "trace-sql passes --help"]),
        (["nope"], ExitCode.USAGE, ["'nope'", "trace-sql --help"]),
        (["passes", "DEMO", "--profile", "x"], ExitCode.USAGE, ["'x'", "gpt_oss"]),
        (["passes", "DEMO", "--config", "none.json"], ExitCode.USAGE, ["none.json"]),
        (["passes", "DEMO", "--config", str(TRACE)], ExitCode.BAD_INPUT, [TRACE.name]),
        (["passes", "DEMO", "--num-layers", "0"], ExitCode.USAGE, ["--num-layers 0"]),
        (["passes", "DEMO", "--num-layers", "11"], ExitCode.REFUSED, ["11", "12"]),
        (["passes", "DEMO", "--phase", "draft"], ExitCode.FAILED, ["'draft'", "decode, prefill"]),
        (["layers", "DEMO", "--phase", "draft"], ExitCode.FAILED, ["'draft'", "decode, prefill"]),
        (["layers", "DEMO", "--pass", "99"], ExitCode.FAILED, ["pass 99", "0 to 7"]),
        (["layers", "DEMO", "--pass", "-1"], ExitCode.FAILED, ["pass -1", "0 to 7"]),
        (["layers", "DEMO", "--pass", f"{1 << 127}"], ExitCode.FAILED, ["no pass", "0 to 7"]),
        (["layers", "DEMO", "--format", "xml"], ExitCode.USAGE, ["xml", "markdown"]),
        (["kernels", "DEMO", "--layer", "99"], ExitCode.FAILED, ["layer 99", "0 to 11"]),
        (
            ["kernels", "DEMO", "--layer", "1", "--compare-layer", "12"],
            ExitCode.FAILED,
            ["layer 12", "0 to 11"],
        ),
        (
            ["kernels", "DEMO", "--layer", "1", "--loop", "1"],
            ExitCode.FAILED,
            ["layer 1 in loop 1", "in 1 loop"],
        ),
        (["kernels", "DEMO"], ExitCode.USAGE, ["--layer"]),
        (["perfetto", "DEMO", "--layers", "2,x"], ExitCode.USAGE, ["'2,x'", "2,3,38"]),
        (["perfetto", "DEMO", "--layers", "2,77"], ExitCode.FAILED, ["layer 77"]),
        (["report", "DEMO", "--layer", "77"], ExitCode.FAILED, ["layer 77"]),
        (["report", "DEMO", "-o", "no/where.md"], ExitCode.FAILED, ["no/where.md"]),
        (["report", "DEMO", "-o", str(DEMO)], ExitCode.USAGE, ["directory"]),
        (["anchors", "nosuch"], ExitCode.USAGE, ["'nosuch'"]),
        (["model", str(TRACE)], ExitCode.BAD_INPUT, [TRACE.name]),
        (["model", "none.json"], ExitCode.USAGE, ["none.json"]),
        (["profiles", "x"], ExitCode.USAGE, ["'x'", "gpt_oss"]),
        (["schema", "x"], ExitCode.USAGE, ["'x'", "layers"]),
        (["ingest"], ExitCode.USAGE, ["PATHS"]),
        (["ingest", "none"], ExitCode.USAGE, ["none", "no such file"]),
        (["ingest", str(TRACE), "--tag", "a"], ExitCode.USAGE, ["'a'", "key=value"]),
        (["passes", "DEMO", "--anchor-offset", "1"], ExitCode.USAGE, ["--anchor-kernel"]),
        (["passes", "DEMO", "--blocks-per-layer", "2"], ExitCode.USAGE, ["--anchor-kernel"]),
        (["sql", "drop table passes"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "insert into traces values (1)"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "create table t as select 1"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "copy (select 1) to 'x.csv'"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "attach 'x.db'"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "set threads = 1"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "select 1; select 2"], ExitCode.FAILED, ["one SELECT"]),
        (["sql", ""], ExitCode.FAILED, ["one SELECT"]),
        (["sql", "selec"], ExitCode.FAILED, ["selec"]),
        (["sql", "select nope from passes"], ExitCode.FAILED, ["nope"]),
        (["sql", "from nosuchview"], ExitCode.FAILED, ["nosuchview"]),
        (["sql", f"from read_text('{CONFIG}')"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from read_csv('{CONFIG}')"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from '{CONFIG}'"], ExitCode.FAILED, [CONFIG.name]),
        (["sql", "from 'https://example.org/a.parquet'"], ExitCode.FAILED, ["disabled"]),
        (["sql", f"from glob('{DEMO}/*')"], ExitCode.FAILED, ["disabled"]),
    ],
)
def test_a_question_without_an_answer(
    run: Run, demo: str, words: list[str], code: ExitCode, parts: list[str]
) -> None:
    refused(run(*[demo if word == "DEMO" else word for word in words]), code, *parts)


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"hidden_size": 8}', b"\xff{}"])
@pytest.mark.parametrize("command", ["passes", "model"])
def test_a_config_that_is_none_is_named(
    run: Run, demo: str, tmp_path: Path, command: str, content: bytes
) -> None:
    path = tmp_path / "broken_config.json"
    path.write_bytes(content)
    words = [command, path] if command == "model" else [command, demo, "--config", path]
    refused(run(*words), ExitCode.BAD_INPUT, "broken_config.json")


def test_without_a_word_the_help_is_shown() -> None:
    result = CliRunner().invoke(main, [])
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "Commands:" in result.stderr
