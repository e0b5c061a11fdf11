"""Every kind of every profile: with the model's config the split is exact, or it is refused.

A kind is a profile x framework x vendor x regime, with true kernel names; its file names the
profile and the boundary rule that must be found. Who removes a profile deletes its file and kinds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from splits import Case, Split, assert_right, split_all

from fixtures import Pass, Scenario, kind, kinds, speculating
from trace_sql.model import Model
from trace_sql.profile import infer, load_profiles

LAYERS = 8
PASSES = (Pass("prefill", 2, 600, context=0), Pass(), Pass(requests=16))
BY_PROFILE: dict[str, list[str]] = defaultdict(list)
for _name in kinds():
    if _profile := kind(_name).profile:
        BY_PROFILE[_profile].append(_name)
profiles = pytest.mark.parametrize("profile", BY_PROFILE)


def case(name: str, **fields: Any) -> Case:
    loops = 2 if kind(name).visits.loops else None
    scenario = Scenario(passes=PASSES, loops=loops, flows=False, gpu_annotations=False, **fields)
    return Case(name, LAYERS, scenario, configured=True)


def explained(split: Split) -> str:
    return "\n".join(f"{row['status']}: {row['evidence']}" for row in split.passes)


@profiles
def test_whole_passes_are_split_exactly(profile: str) -> None:
    batch = [
        scene
        for name in BY_PROFILE[profile]
        for scene in (
            case(name, noise_thread=3, seed=1),
            case(name, launch="graph", noise_after=2),
            case(name, world_size=2, annotations=False),
        )
    ]
    for scene, split in zip(batch, assert_right(batch), strict=True):
        assert split.verdict["verdict"] == "split", (scene, split.verdict["message"])
        found = [(row["status"], row["rule"], row["n_layers"]) for row in split.passes]
        whole = ("complete", kind(scene.kind).rule, len(Model.from_config(scene.config).layers))
        assert found == [whole] * len(PASSES), (scene, explained(split))


SPECULATING = (Pass("prefill", 1, 512, context=0), *speculating(3, 8, 3)[2:])
FOUND = {
    "a norm that few layers run inside, in a pass cut at both ends": Case(
        "kimi_k3_sglang_nvidia_sp", 11, Scenario(passes=(Pass(),), cut_start=11, cut_end=112)
    ),
    "the end of the trace behind the norm of a loop": Case(
        "ouro_exit_nvidia",
        3,
        Scenario(
            passes=(Pass("mixed", 2, 600), Pass("mixed", 2, 64)),
            launch="graph",
            loops=3,
            overlap=True,
            seed=62,
            cut_end=405,
            annotations=False,
        ),
    ),
    "a trace that begins inside a draft": Case(
        "dsv3_mla_sglang_nvidia_nextn",
        8,
        Scenario(
            passes=SPECULATING,
            launch="piecewise",
            world_size=2,
            side="late",
            cut_start=725,
            annotations=False,
        ),
    ),
    "the rest of a pass without launches before the first one": Case(
        "dsv41_vllm_nvidia",
        4,
        Scenario(passes=(Pass("prefill", 1, 2048), Pass("prefill", 2, 2048)), cut_start=138),
    ),
    "a core that runs once, with a norm behind it": Case(
        "huginn_hf_nvidia", 5, Scenario(passes=(Pass(), Pass()), loops=1)
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_wrong_once_is_right(what: str) -> None:
    assert_right([replace(FOUND[what], configured=True)])


@profiles
def test_cut_traces_are_right_or_refused(profile: str) -> None:
    batch = []
    for name in BY_PROFILE[profile]:
        n_events = len(case(name).made().truth.rows or ())
        for share in (0.1, 0.25, 0.4):
            batch.append(case(name, cut_start=int(share * n_events)))
            batch.append(case(name, cut_end=int(share * n_events), launch="graph"))
    splits = assert_right(batch)
    n_split = sum(split.verdict["verdict"] == "split" for split in splits)
    assert n_split > 0.8 * len(batch)


@profiles
def test_a_wrong_layer_count_is_refused_with_the_nearest_reading(profile: str) -> None:
    batch = [
        replace(case(name), wrong_layers=wrong)
        for name in BY_PROFILE[profile]
        for wrong in (LAYERS - 1, LAYERS + 1)
    ]
    for scene, split in zip(batch, split_all(batch), strict=True):
        assert split.verdict["verdict"] == "refused", (scene, explained(split))
        assert f"fit N={LAYERS}" in split.verdict["message"], (scene, split.verdict["message"])


@profiles
def test_a_wrong_profile_is_refused(profile: str) -> None:
    """Unless its rules know the same anchors, as where families share a base."""
    anchors = [rule.anchor for rule in load_profiles()[profile].resolved_boundaries]
    names = {
        name: [kind(name).kernels[alias].name for alias in kind(name).repeated] for name in kinds()
    }
    others = [
        name
        for name, repeated in names.items()
        if not any(re.search(anchor, one) for anchor in anchors for one in repeated)
    ]
    batch = [
        replace(case(name), configured=False, told=LAYERS, profile=profile)
        for name in others[len(profile) % 5 :: 5]
    ]
    for scene, split in zip(batch, assert_right(batch), strict=True):
        assert split.verdict["verdict"] == "refused", (scene, explained(split))


@profiles
def test_a_missing_boundary_is_right_or_refused(profile: str) -> None:
    batch = [case(name, tamper=how) for name in BY_PROFILE[profile] for how in ("shift", "thin")]
    assert_right(batch)


LOOPED = [name for name in kinds() if kind(name).profile and kind(name).visits.loops]


@pytest.mark.parametrize("name", LOOPED)
def test_a_pass_may_leave_the_loops_early(name: str) -> None:
    # The last one may be cut for all that is known, unless it has the depth of the config.
    depths = (3, 1, 2, 3)
    passes = tuple(Pass(loops=depth) for depth in depths)
    scenario = Scenario(passes=passes, loops=max(depths), noise_thread=2)
    (split,) = assert_right([Case(name, 4, scenario, configured=True)])
    found = [(row["status"], row["depth"]) for row in split.passes]
    assert found == [("complete", depth) for depth in depths], explained(split)


@settings(max_examples=2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
@pytest.mark.parametrize("name", LOOPED)
def test_looped_passes_are_right_or_refused(name: str, data: st.DataObject) -> None:
    batch = []
    for _ in range(6):
        loops = data.draw(st.integers(1, 4))
        draws: dict[str, Any] = {
            "launch": data.draw(st.sampled_from(["eager", "graph", "piecewise"])),
            "world_size": data.draw(st.integers(1, 2)),
            "noise_thread": data.draw(st.sampled_from([0, 3])),
            "annotations": data.draw(st.booleans()),
        }
        # A cut pass has the depth of the config, unless whole ones show that depth changes, and no
        # count that would contradict a boundary too many.
        cuts = [data.draw(st.sampled_from([0, 0, 0.2, 0.4])) for _ in range(2)]
        if not any(cuts):
            draws["tamper"] = data.draw(st.sampled_from(["none", "shift", "double", "thin"]))
        depth = st.just(loops) if any(cuts) else st.integers(1, loops)
        depths = data.draw(st.lists(depth, min_size=1, max_size=3))
        passes = tuple(Pass(loops=depth) for depth in depths)
        scenario = Scenario(passes=passes, loops=loops, flows=False, **draws)
        whole = Case(name, data.draw(st.integers(3, 5)), scenario, configured=True)
        n_events = len(whole.made().truth.rows or ())
        start, end = (int(part * n_events) for part in cuts)
        batch.append(replace(whole, scenario=replace(scenario, cut_start=start, cut_end=end)))
    assert_right(batch)


@pytest.mark.parametrize("name", [name for names in BY_PROFILE.values() for name in names])
def test_the_config_of_a_kind_gets_its_profile(name: str) -> None:
    model = kind(name)
    profile, reason = infer(Model.from_config(model.model_config()))
    assert profile.name == model.profile, reason


def test_every_boundary_rule_has_a_kind() -> None:
    """A rule that no made trace exercises is not known to work."""
    used = {kind(name).rule for name in kinds()}
    rules = {rule.name for profile in load_profiles().values() for rule in profile.boundaries}
    assert rules - used == set()
