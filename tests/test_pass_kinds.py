"""Several kinds of pass in one trace: drafts between targets, microbatches beside each other."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from splits import Case, Split, assert_right, split_all

from fixtures import Made, Pass, Scenario, kind, kinds, speculating

LAYERS = 8
DRAFTING = ("sglang_llama_nvidia", "dsv3_mla_sglang_nvidia_nextn", "dsv4_sglang_nvidia_nextn")
BESIDE = ("sglang_llama_nvidia", "vllm_gptoss_nvidia", "dsv4_sglang_nvidia")


def case(name: str, scenario: Scenario) -> Case:
    """What is told: the config where a profile needs one, else the number of layers."""
    if kind(name).profile:
        return Case(name, LAYERS, scenario, configured=True)
    return Case(name, LAYERS, scenario, told=LAYERS)


@pytest.mark.parametrize("launch", ["eager", "graph"])
@pytest.mark.parametrize("name", [name for name in DRAFTING if name in kinds()])
def test_drafts_are_passes_of_their_own(name: str, launch: Any) -> None:
    # Behind the last pass of all nothing proves that a draft is whole.
    scenario = Scenario(passes=(*speculating(), Pass()), launch=launch)
    (split,) = assert_right([case(name, scenario)])
    assert split.verdict["n_layers"] == LAYERS
    found = [(row["status"], row["kind"], row["n_layers"]) for row in split.passes]
    assert found == [
        ("complete", plan.kind, LAYERS if plan.kind == "target" else 1) for plan in scenario.passes
    ]
    for plan, row in zip(scenario.passes, split.passes, strict=True):
        phase = plan.phase if plan.kind == "target" else "draft"
        assert str(row["phase"]).startswith(phase), row


def layers_of(made: Made, found: Split) -> tuple[list[Any], list[Any]]:
    """Return the activities of each layer and slot of each pass, in the truth and as found."""
    true: dict[int, list[Any]] = defaultdict(list)
    seen: dict[int, list[Any]] = defaultdict(list)
    for row in made.truth.rows or ():
        if row.region == "layer" and row.pass_no is not None:
            true[row.pass_no].append((row.event_id, row.layer_no, row.slot))
    for event_id, (pass_no, _, layer_no, slot, region) in found.places.items():
        if region == "layer":
            seen[pass_no].append((event_id, layer_no, slot))
    return sorted(map(sorted, true.values())), sorted(map(sorted, seen.values()))


@pytest.mark.parametrize("launch", ["eager", "graph"])
@pytest.mark.parametrize("threads", ["one_thread", "two_threads"])
@pytest.mark.parametrize("name", [name for name in BESIDE if name in kinds()])
def test_microbatches_on_two_streams_are_two_passes(name: str, threads: Any, launch: Any) -> None:
    passes = (Pass("prefill", 4, 800), Pass(), Pass())
    one = case(name, Scenario(passes=passes, overlap_batches=threads, launch=launch))
    (split,) = split_all([one])
    assert [row["status"] for row in split.passes] == ["complete"] * 6
    # They begin nearly at once: which of the two is first is not the point.
    true, seen = layers_of(split.made, split)
    assert seen == true
    assert {row["phase"] for row in split.passes} <= {"prefill", "decode", None}
    for pair in (split.passes[:2], split.passes[2:4], split.passes[4:]):
        assert pair[1]["start_ns"] < pair[0]["end_ns"] and pair[0]["start_ns"] < pair[1]["end_ns"]


def test_one_anchor_stream_that_others_share_is_no_lane() -> None:
    """Passes that follow each other on two streams are one line."""
    one = case("sglang_qwen3_amd", Scenario(passes=(Pass(),) * 4, launch="graph"))
    made = one.made()
    for row in made.truth.rows or ():
        event = made.events[row.event_id]
        if row.pass_no in (1, 3) and event["tid"] == kind(one.kind).streams["main"]:
            event["tid"] = event["args"]["stream"] = 77
    split = split_all([one], [made])[0]
    assert [row["status"] for row in split.passes] == ["complete"] * 4
    true, seen = layers_of(made, split)
    assert seen == true
