"""Attention of every kind that tests make, by the commands that people run: nothing is lost, and
what is written passes its own check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import answer, command
from operators_made import Op, Tape
from test_attention_serving import CASES as SERVING
from test_attention_training import CASES as TRAINING
from test_unfused_kinds import KINDS

from trace_sql.errors import ExitCode


def serving(tape: Tape) -> int:
    for step, operator, *_ in SERVING.values():
        tape.step(step, operator)
    return len(SERVING)


def training(tape: Tape) -> int:
    tape.run(*(operator for operator, *_ in TRAINING.values()))
    return len(TRAINING)


def unfused(tape: Tape) -> int:
    parted: list[Op] = [part for operators, *_ in KINDS.values() for part in operators]
    tape.run(*parted)
    return len(KINDS)


@pytest.mark.parametrize("kinds", [serving, training, unfused])
def test_what_the_commands_write_passes_its_check(
    tmp_path: Path, kinds: Callable[[Tape], int]
) -> None:
    tape = Tape("NVIDIA H100 80GB HBM3")
    n_calls = kinds(tape)
    path, findings, metrics = (
        tmp_path / name for name in ("made.json", "findings.md", "metrics.json")
    )
    tape.write(path)
    options = ("--findings", findings, "--metrics", metrics, "--format", "json")
    shown = answer(command(tmp_path, "attention", path, *options))
    assert sum(row["n_calls"] for row in shown["operations"]) == n_calls
    assert all(0 < row["efficiency_pct"] <= 100 for row in shown["operations"])
    written = json.loads(metrics.read_text(encoding="utf-8"))
    assert sum(row["count"] for row in written["operations"]) == n_calls
    found = command(tmp_path, "attention", "--validate", findings, "--metrics", metrics)
    assert found.exit_code == ExitCode.OK, found.stdout
