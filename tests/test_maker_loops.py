"""Looped models, drafts, microbatches and tags in made traces: the truth against counts by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import fixtures as made_traces
from fixtures import Made, Pass, Row, Scenario, make, speculating
from fixtures.layers import Tagging
from fixtures.order import layer_tags

KINDS = made_traces.kinds()
DRAFTED = [name for name in KINDS if made_traces.kind(name).draft]
NORM = "rsqrt_kernel"
Event = dict[str, Any]


def looped(kind: str, layers: int, loops: int, *passes: Pass, **more: Any) -> Made:
    config = made_traces.kind(kind).model_config(layers, loops)
    return make(config, kind, Scenario(passes=passes or (Pass(),), **more))


def placed(made: Made, pass_no: int = 0) -> list[tuple[Event, Row]]:
    """List the device events of a pass with their rows, as they start."""
    found = [(made.events[r.event_id], r) for r in made.truth.rows or [] if r.pass_no == pass_no]
    return sorted(found, key=lambda pair: pair[0]["ts"])


def outline(made: Made) -> list[tuple[str, int | None, int | None]]:
    """List (region, loop, layer) of a pass, a run of the same once."""
    found = [(row.region, row.loop_no, row.layer_no) for _, row in placed(made)]
    return [place for i, place in enumerate(found) if i == 0 or found[i - 1] != place]


def count(made: Made, part: str, **where: Any) -> int:
    """Count kernels of pass 0 by a part of their names, where the row has these values."""
    return sum(
        part in event["name"] and all(getattr(row, key) == value for key, value in where.items())
        for event, row in placed(made)
    )


# Loops.


@pytest.mark.parametrize("kind", ["ouro_hf_nvidia", "ouro_exit_nvidia"])
def test_ouro_ends_each_loop_with_a_norm_and_a_gate(kind: str) -> None:
    made = looped(kind, 2, 3)
    assert made.truth.loops == 3
    expected: list[tuple[str, int | None, int | None]] = [("prologue", None, None)]
    for loop in range(3):
        expected += [("layer", loop, 0), ("layer", loop, 1)]
        expected += [("epilogue", loop if loop < 2 else None, None)]
    assert outline(made) == expected
    assert count(made, NORM) == 4 * 2 * 3 + 3
    assert count(made, "gemvx") == 3
    assert count(made, NORM, region="epilogue", loop_no=1) == 1
    assert count(made, "gemvx", region="epilogue", loop_no=None) == 1


def test_a_pass_can_leave_the_loop_early() -> None:
    made = looped("ouro_exit_nvidia", 2, 4, Pass(), Pass(loops=2), Pass("prefill", 1, 64))
    assert [one.loops for one in made.truth.passes] == [4, 2, 4]
    assert [len(one.layers) for one in made.truth.passes] == [8, 4, 8]
    assert [one.anchor_hits for one in made.truth.passes] == [36, 18, 36]
    written = made.truth.as_json()["passes"]
    assert [one.get("loops") for one in written] == [None, 2, None]
    assert all("kind" not in one for one in written)


def test_huginn_runs_prelude_core_and_coda() -> None:
    made = looped("huginn_hf_nvidia", 8, 3)
    config = made_traces.kind("huginn_hf_nvidia").model_config(8, 3)
    assert (config["mean_recurrence"], config["effective_expected_depth"]) == (3, 2 + 4 * 3 + 2)
    expected = [("prologue", None, None), ("layer", 0, 0), ("layer", 0, 1)]
    for loop in range(3):
        expected += [("prologue", loop, None), *(("layer", loop, n) for n in (2, 3, 4, 5))]
    expected += [("epilogue", 2, None), ("layer", 0, 6), ("layer", 0, 7), ("epilogue", None, None)]
    assert outline(made) == expected
    assert count(made, NORM) == 4 * 16 + 2
    assert count(made, "CatArray", region="prologue") == 3
    assert count(made, "gemm", region="prologue", loop_no=1) == 1
    # The state is drawn once, before the first loop.
    assert count(made, "distribution_elementwise") == 1


def test_a_small_huginn_keeps_a_core() -> None:
    for layers in range(1, 9):
        config = made_traces.kind("huginn_hf_nvidia").model_config(layers)
        parts = [config[f"n_layers_in_{part}"] for part in ("prelude", "recurrent_block", "coda")]
        assert sum(parts) == config["n_layers"] == layers
        assert parts[1] >= 1
    wrong = made_traces.kind("huginn_hf_nvidia").model_config(8) | {
        "n_layers_in_recurrent_block": 3
    }
    with pytest.raises(ValueError, match=r"2 \+ 3 \+ 2 layers are not 8"):
        make(wrong, "huginn_hf_nvidia")


@pytest.mark.parametrize(("kind", "plain"), [("nanbeige_sglang_nvidia", 5), ("_skip", 3)])
def test_nanbeige_begins_each_loop_with_a_plain_norm(kind: str, plain: int) -> None:
    kind = kind if kind[0] != "_" else f"nanbeige_sglang_nvidia{kind}"
    made = looped(kind, 4, 3)
    assert count(made, "::RMSNormKernel") == plain
    assert count(made, "FusedAddRMSNormKernel") == 3 * (2 * 4 - 1) + 1
    assert [place for place in outline(made) if place[0] == "epilogue"] == [
        ("epilogue", 0, None),
        ("epilogue", 1, None),
        ("epilogue", None, None),
    ]
    for loop in range(3):
        assert count(made, "::RMSNormKernel", region="layer", loop_no=loop, layer_no=0) == 1
    assert count(made, "FusedAdd", region="epilogue") == 1
    one = made.truth.passes[0]
    assert (one.entry_hits, one.anchor_hits) == (3, 3 * 7 + 1)


def test_hrm_runs_the_low_stack_more_often_than_the_high_one() -> None:
    made = looped("hrm_sglang_nvidia", 2, 2)
    assert made.truth.n_layers == 2
    expected: list[tuple[str, int | None, int | None]] = []
    for visit in range(2 * 4):
        expected += [("prologue", visit, None)]
        expected += [("layer", visit, 0), ("layer", visit, 1)]
        expected += [("epilogue", visit, None)]
    expected[-1] = ("epilogue", None, None)
    assert outline(made) == [("prologue", None, None), *expected]
    assert count(made, "RMSNormKernel") == 2 * 16 + 8
    assert made.truth.passes[0].anchor_hits == 40


def test_loop_coder_attends_twice_from_the_second_loop_on() -> None:
    made = looped("iquest_sglang_nvidia", 3, 2)
    attention = "BatchDecodeWithPagedKVCache"
    assert [count(made, attention, loop_no=loop, layer_no=1) for loop in (0, 1)] == [1, 2]
    assert count(made, "RMSNormKernel") == 2 * 6 + 1
    assert count(made, "sigmoid", loop_no=0) == 0


def test_each_layer_can_loop_by_itself() -> None:
    spec = made_traces.kind("sglang_qwen3_amd")
    by_layer = replace(spec, visits=replace(spec.visits, order="layer"), cache={})
    made = make(spec.model_config(2), by_layer, Scenario(passes=(Pass(),), loops=3))
    visits = [(row.layer_no, row.loop_no) for row in made.truth.passes[0].layers]
    assert visits == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert made.truth.passes[0].entry_hits == 1


def test_frames_of_a_loop_call_the_same_modules_again() -> None:
    made = looped("ouro_hf_nvidia", 2, 3, frames="modules")
    called = Counter(e["name"] for e in made.events if e["name"].startswith("nn.Module"))
    assert called["nn.Module: OuroDecoderLayer_0"] == called["nn.Module: OuroDecoderLayer_1"] == 3
    # Four norms a layer and the final one, which runs behind each loop.
    norms = {name for name in called if "OuroRMSNorm" in name}
    assert norms == {f"nn.Module: OuroRMSNorm_{n}" for n in range(9)}
    assert all(called[name] == 3 for name in norms)


# Drafts.


@pytest.mark.parametrize("kind", DRAFTED)
@pytest.mark.parametrize("launch", ["eager", "graph"])
def test_rounds_of_drafts_and_verification(kind: str, launch: Any) -> None:
    spec = made_traces.kind(kind)
    plan = speculating(rounds=2, requests=4, drafted=3)
    made = make(spec.model_config(3), kind, Scenario(passes=plan, launch=launch))
    shown = [(one.kind, one.phase, one.tokens, len(one.layers)) for one in made.truth.passes]
    around = [("draft", "draft", 4, 1), ("draft", "draft", 4, 1), ("target", "verify", 16, 3)]
    around.append(("draft", "draft", 16, 1))
    start = [("target", "prefill", 512, 3), ("draft", "draft", 512, 1)]
    assert shown == start + around * 2
    assert spec.draft is not None
    for one in made.truth.passes:
        runs = spec.draft if one.kind == "draft" else spec
        assert one.anchor_hits == runs.hits(len(one.layers))
        assert one.entry_hits == len(runs.entry)
        names = {runs.kernels[alias].name for alias in runs.repeated}
        assert sum(e["name"] in names for e, _ in placed(made, one.pass_no)) == one.anchor_hits
    assert [one.get("kind") for one in made.truth.as_json()["passes"]][:3] == [None, *["draft"] * 2]


def test_drafts_of_one_round_run_in_one_graph() -> None:
    spec = made_traces.kind("sglang_llama_nvidia")
    scenario = Scenario(passes=speculating(rounds=1, requests=4, drafted=4), launch="graph")
    made = make(spec.model_config(2), spec, scenario)
    launches = [e["args"]["correlation"] for e in made.events if e["name"] == "cudaGraphLaunch"]
    used = [{e["args"]["correlation"] for e, _ in placed(made, n)} & {*launches} for n in range(7)]
    assert [len(one) for one in used] == [1] * 7
    assert used[2] == used[3] == used[4]
    assert len(launches) == 5
    named = [e["name"] for e in made.events if e.get("cat") == "user_annotation"]
    assert named == ["step[EXTEND bs=1 toks=512]", "step[VERIFY bs=4]"]


@pytest.mark.parametrize(
    ("kind", "plan", "name"),
    [
        ("sglang_llama_nvidia", Pass("verify", 8), "step[VERIFY bs=8]"),
        ("sglang_llama_nvidia", Pass("decode", 8, kind="draft"), "step[DRAFT bs=8]"),
        ("sglang_llama_nvidia", Pass("prefill", 2, 9, kind="draft"), "step[DRAFT bs=2 toks=9]"),
        ("vllm_gptoss_nvidia", Pass("verify", 8, 24), "execute_context_0(0)_generation_8(24)"),
    ],
)
def test_speculative_steps_are_named(kind: str, plan: Pass, name: str) -> None:
    made = make(made_traces.kind(kind).model_config(2), kind, Scenario(passes=(plan,)))
    assert [e["name"] for e in made.events if e.get("cat") == "user_annotation"] == [name]


def test_a_draft_has_as_many_layers_as_asked() -> None:
    made = make(
        made_traces.kind("dsv3_mla_sglang_nvidia_nextn").model_config(4),
        "dsv3_mla_sglang_nvidia_nextn",
        Scenario(passes=(Pass(), Pass(kind="draft", layers=3)), frames="modules"),
    )
    assert [len(one.layers) for one in made.truth.passes] == [4, 3]
    # The draft's layers are experts, as the target's last ones are, and modules of their own.
    assert any(row.layer_no == 2 and "moe" in e["name"] for e, row in placed(made, 1))
    names = {e["name"] for e in made.events if "nn.Module: DeepseekV2DecoderLayer" in e["name"]}
    assert names == {f"nn.Module: DeepseekV2DecoderLayer_{n}" for n in range(7)}


# Microbatches.


@pytest.mark.parametrize("launch", ["eager", "graph", "piecewise"])
@pytest.mark.parametrize("threads", ["one_thread", "two_threads"])
def test_microbatches_run_beside_each_other(launch: Any, threads: Any) -> None:
    spec = made_traces.kind("sglang_llama_nvidia")
    passes = (Pass("decode", 5), Pass("prefill", 1, 64), Pass("prefill", 2, 64))
    scenario = Scenario(passes=passes, launch=launch, overlap_batches=threads, noise_thread=2)
    made = make(spec.model_config(4), spec, scenario)
    shown = [(one.requests, one.tokens, one.complete) for one in made.truth.passes]
    assert shown == [(3, 3, True), (2, 2, True), (1, 64, True), (1, 32, True), (1, 32, True)]
    streams = [{e["tid"] for e, _ in placed(made, number)} for number in range(5)]
    main, second = spec.streams["main"], spec.second_stream
    assert streams == [{main}, {second}, {main}, {main}, {second}]
    for first, other in ((0, 1), (3, 4)):
        a, b = made.truth.passes[first], made.truth.passes[other]
        assert a.start_ns < b.start_ns < a.end_ns
        assert a.anchor_hits == b.anchor_hits == 8
        turns = [
            n for e, n in sorted((e["ts"], n) for n in (first, other) for e, _ in placed(made, n))
        ]
        assert sum(x != y for x, y in zip(turns, turns[1:], strict=False)) >= 8
    calls = {e["args"]["correlation"]: e for e in made.events if "cbid" in e.get("args", {})}
    for number in range(5):
        for event, _ in placed(made, number):
            call = calls[event["args"]["correlation"]]
            assert call["ts"] + call["dur"] <= event["ts"]
    tids = {calls[e["args"]["correlation"]]["tid"] for e, _ in placed(made, 1)}
    if launch == "eager":
        own = {calls[e["args"]["correlation"]]["tid"] for e, _ in placed(made, 0)}
        assert (tids == own) == (threads == "one_thread")
    named = [e["name"] for e in made.events if e.get("cat") == "user_annotation"]
    assert len(named) == 3


# Tags, and configs of any number of layers.

TAGGED: dict[str, Any] = {
    "ratios": [0, 4, 128, 4, 0],
    "pattern": "ME*-",
    "dense": 2,
    "text": {"ids": [1, 3], "every": 2, "words": ["a", "b", "a", "b"]},
}


@pytest.mark.parametrize(
    ("tagging", "tags"),
    [
        (Tagging("ratios", values={"0": "swa", "4": "c4"}, others="rest"), "swa c4 rest c4"),
        (Tagging("pattern", values={"M": "m", "E": "e", "*": "a", "-": "d"}), "m e a d"),
        (Tagging("dense", below="dense", others="moe"), "dense dense moe moe"),
        (Tagging("text.ids", base=1, member="x", others="y"), "x y x y"),
        (Tagging("text.ids", member="x"), "- x - x"),
        (Tagging("text.every", every="full", others="linear"), "linear full linear full"),
        (Tagging("text.words"), "a b a b"),
    ],
)
def test_a_key_tags_layers(tagging: Tagging, tags: str) -> None:
    assert [tag or "-" for tag in tagging.of(TAGGED, 4)] == tags.split()


@pytest.mark.parametrize(
    ("tagging", "problem"),
    [
        (Tagging("ratios", values={"0": "swa"}), "ratios has '4', which no tag is for"),
        (Tagging("pattern"), "pattern has 4 entries for 5 layers"),
        (Tagging("text.gone", below="x"), "gives no number in text.gone"),
        (Tagging("dense", member="x"), "gives no list in dense"),
    ],
)
def test_a_config_that_does_not_fit_the_tags(tagging: Tagging, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tagging.of(TAGGED, 5)


def test_a_config_is_cut_or_repeated() -> None:
    spec = replace(
        made_traces.kind("sglang_qwen3_amd"),
        config={"text": {"pattern": "ME*", "ids": [1, 3], "ratios": [0, 4, 8, 9]}},
        count_key="text.pattern",
        tags=(
            Tagging("text.pattern", values={"M": "mamba", "E": "moe", "*": "attn"}),
            Tagging("text.ids", base=1, member="x"),
            Tagging("text.ratios"),
        ),
        cache={},
    )
    assert spec.model_config()["text"] == {"pattern": "ME*", "ids": [1, 3], "ratios": [0, 4, 8]}
    assert spec.model_config(2)["text"] == {"pattern": "ME", "ids": [1], "ratios": [0, 4]}
    assert spec.model_config(4)["text"]["pattern"] == "ME*M"
    assert spec.config["text"]["pattern"] == "ME*"
    own = [tags - {"full_attention"} for tags in layer_tags(spec.model_config(), spec)]
    assert own == [
        {"mamba", "x", "0", "layer0"},
        {"moe", "4", "inner"},
        {"attn", "x", "8", "final"},
    ]
    with pytest.raises(ValueError, match="no key for the number of loops"):
        spec.model_config(2, loops=3)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_what_the_split_must_choose(name: str) -> None:
    kind = made_traces.kind(name)
    assert kind.rule is not None


def test_what_makes_no_sense_is_refused() -> None:
    config = made_traces.kind("sglang_llama_nvidia").model_config(2)

    def refused(*passes: Pass, **more: Any) -> str:
        with pytest.raises(ValueError) as problem:
            make(config, "sglang_llama_nvidia", Scenario(passes=passes or (Pass(),), **more))
        return str(problem.value)

    assert "config counts the target's" in refused(Pass(layers=1))
    assert "a prefill or a decode" in refused(Pass("verify", kind="draft"))
    assert "none of their collectives is late" in refused(overlap_batches="one_thread", side="late")
    assert "at least 1" in refused(Pass(loops=0))
    with pytest.raises(ValueError, match="hf_qwen2_amd has no draft"):
        make({"num_hidden_layers": 1}, "hf_qwen2_amd", Scenario(passes=(Pass(kind="draft"),)))
