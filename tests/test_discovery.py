"""Anchors proposed for models that no rule knows, on made traces whose names say nothing."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import Analyse, Analysed

from fixtures import Made, Pass, Scenario, kind, make, serving, write
from trace_sql.cli import main
from trace_sql.output import WIDTH

STEPS = serving(cold=1, growing=2, steady=4)
PLAIN = Scenario(passes=STEPS, annotations=False, gpu_annotations=False)
SCENARIOS = {
    "eager": (PLAIN, 6),
    "graph": (replace(PLAIN, launch="graph"), 6),
    "cut at both ends": (replace(PLAIN, cut_start=70, cut_end=45), 8),
    "one pass": (replace(PLAIN, passes=(Pass(),)), 12),
    "two passes": (replace(PLAIN, passes=(Pass(), Pass())), 9),
    "noise beside": (replace(PLAIN, noise_thread=3), 6),
    "prefills": (replace(PLAIN, passes=tuple(Pass("prefill", 1, 512) for _ in range(5))), 10),
}
CASES = [
    ("sglang_qwen3_amd", "eager"),
    ("vllm_gptoss_nvidia", "graph"),
    ("sglang_llama_nvidia", "cut at both ends"),
    ("vllm_gptoss_amd", "one pass"),
    ("hf_qwen2_nvidia", "two passes"),
    ("sglang_qwen3_nvidia", "noise beside"),
    ("sglang_llama_nvidia_fused", "prefills"),
]


def hidden(name: str) -> str:
    """A name that says nothing, and of which no other is a part."""
    return f"k{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def without_names(made: Made) -> Made:
    events = [
        {**event, "name": hidden(event["name"])} if event.get("cat") == "kernel" else event
        for event in made.events
    ]
    return replace(made, events=events)


@pytest.fixture
def nameless(tmp_path: Path) -> Callable[[str, Scenario, int], tuple[Path, Made]]:
    def write_trace(name: str, scenario: Scenario, layers: int) -> tuple[Path, Made]:
        chosen = kind(name)
        made = without_names(make(chosen.model_config(layers), chosen, scenario))
        return write(made, tmp_path / f"{name}.json"), made

    return write_trace


def accepted(options: str) -> dict[str, Any]:
    """Return the settings that a printed option string gives."""
    words = shlex.split(options)
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert list(given) == [
        "--anchor-kernel",
        "--blocks-per-layer",
        "--num-layers",
        "--anchor-offset",
    ]
    return {
        "anchor_kernel": given["--anchor-kernel"],
        "blocks_per_layer": int(given["--blocks-per-layer"]),
        "num_layers": int(given["--num-layers"]),
        "anchor_offset": int(given["--anchor-offset"]),
    }


def best(analysed: Analysed) -> dict[str, Any]:
    rows = analysed.rows("from anchor_proposals order by rank")
    assert rows
    return rows[0]


@pytest.mark.parametrize(("name", "scenario"), CASES)
def test_the_best_proposal_is_right_and_works_when_pasted(
    name: str,
    scenario: str,
    nameless: Callable[[str, Scenario, int], tuple[Path, Made]],
    analyse: Analyse,
) -> None:
    plan, layers = SCENARIOS[scenario]
    path, made = nameless(name, plan, layers)
    unknown = analyse(path)
    assert unknown.rows("select verdict from unsplittable") == [{"verdict": "refused"}]
    proposal = best(unknown)
    assert proposal["n_layers"] == layers
    settings = accepted(proposal["options"])
    split = analyse(path, **settings)
    assert split.verdict["verdict"] == "split"
    # Every anchor of a whole pass stands in the layer that the trace was made with.
    truth = {row.event_id: row for row in made.truth.rows or ()}
    whole = {entry.pass_no for entry in made.truth.passes if entry.complete}
    found = {row["event_id"]: row for row in split.activities if row["layer_no"] is not None}
    anchors = [
        (truth[event_id], row)
        for event_id, row in found.items()
        if settings["anchor_kernel"] in row["name"] and truth[event_id].pass_no in whole
    ]
    assert {row["layer_no"] - true.layer_no for true, row in anchors} == {0}
    shifts = {row["pass_no"] - true.pass_no for true, row in anchors}
    assert len(shifts) == 1
    assert len(anchors) == len(whole) * layers * settings["blocks_per_layer"]
    # And a layer holds what it held when made, but for a begin that only layer 0 has otherwise.
    lead = {
        true.event_id
        for true in made.truth.rows or ()
        if true.layer_no is not None and true.pass_no in whole
    } - {event_id for event_id, row in found.items() if truth[event_id].layer_no == row["layer_no"]}
    assert len(lead) <= len(whole) * layers * max(proposal["lead"] + 1, 1)


def test_names_that_contain_each_other_are_told_apart(tmp_path: Path, analyse: Analyse) -> None:
    """A text that matches two kernels would count both."""
    chosen = kind("sglang_qwen3_amd")
    made = make(chosen.model_config(8), chosen, PLAIN)
    names = sorted({event["name"] for event in made.events if event.get("cat") == "kernel"})
    # kaaa, kaaab, kaaabb ...: each is a part of the next but the last.
    longer = {name: "block" + "x" * index + "_end" for index, name in enumerate(names)}
    events = [
        {**event, "name": longer[event["name"]]} if event.get("cat") == "kernel" else event
        for event in made.events
    ]
    proposal = best(analyse(write(replace(made, events=events), tmp_path / "t.json")))
    text = accepted(proposal["options"])["anchor_kernel"]
    assert [name for name in longer.values() if text in name] == [proposal["name"]]


@pytest.mark.parametrize(
    ("trace", "layers"),
    [
        ("hf_bert_small_h100", 4),
        ("hf_qwen1_5_0_5b_h100", 24),
        ("sglang_qwen3_8b_decode_mi300x", 36),
        ("vllm_gpt_oss_120b_prefill_b200", 36),
    ],
)
def test_real_traces_get_their_layer_count(
    trace: str, layers: int, shared: Callable[[str], Path], analyse: Analyse
) -> None:
    path = shared(f"traces/{trace}.json.gz")
    proposal = best(analyse(path))
    assert proposal["n_layers"] == layers
    split = analyse(path, **accepted(proposal["options"]))
    if split.verdict["verdict"] == "split":
        (whole,) = (row for row in split.passes if row["status"] == "complete")
        assert whole["n_layers_seen"] == layers
    else:
        # Frames know where a layer begins, and that no kernel there can be told from others.
        assert "python frame" in split.verdict["message"]
        assert "python frames" in proposal["reasons"]


@pytest.mark.parametrize("trace", ["torch_compile_triton", "train_mi250"])
def test_nothing_is_proposed_where_no_order_repeats(
    trace: str, shared: Callable[[str], Path], analyse: Analyse
) -> None:
    assert analyse(shared(f"traces/{trace}.json.gz")).rows("from anchor_proposals") == []


def test_the_command_prints_options_that_it_accepts(
    tmp_path: Path, nameless: Callable[[str, Scenario, int], tuple[Path, Made]]
) -> None:
    path, _ = nameless("sglang_qwen3_amd", PLAIN, 6)

    def run(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(main, ["--store", str(tmp_path / "store"), *words])
        return done.exit_code, done.stdout, done.stderr

    code, _, words = run("passes", str(path))
    assert code == 5
    assert "--anchor-kernel" in words
    code, text, _ = run("anchors", str(path))
    assert code == 0
    (options,) = re.findall(r"^1: (--anchor-kernel .*)$", text, re.MULTILINE)
    table = [line for line in text.splitlines() if not re.match(r"\d+: --anchor", line)]
    assert max(map(len, table)) <= WIDTH
    code, listed, _ = run("passes", str(path), *shlex.split(options), "--format", "json")
    assert code == 0
    assert len(json.loads(listed)) == len(STEPS)
    _, document, _ = run("anchors", str(path), "--format", "json")
    assert json.loads(document)["proposals"][0]["options"] == options
    _, markdown, _ = run("anchors", str(path), "--format", "markdown")
    assert f"1: {options}\n" in markdown
    _, rows, _ = run("anchors", str(path), "--format", "csv")
    assert rows.startswith("rank,")
    # Once it is split there is nothing to propose.
    _, text, _ = run("anchors", str(path), *shlex.split(options))
    assert "proposed" not in text
