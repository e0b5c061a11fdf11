"""Every kind of every profile: with the model's config the split is exact, or it is refused.

A kind is a profile x framework x vendor x regime, with true kernel names; its file names the
profile and the boundary rule that must be found. Who removes a profile deletes its file and kinds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from splits import Case, Split, assert_right, split_all

from fixtures import Pass, Scenario, kind, kinds
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
def test_a_missing_boundary_is_refused(profile: str) -> None:
    batch = [case(name, tamper=how) for name in BY_PROFILE[profile] for how in ("shift", "thin")]
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
