"""Made traces: for every device event the split is right, or it is refused; never wrong in silence.

What a trace cannot tell, the split says it does not know (region NULL), with three exceptions
that `allowed` lists: what belongs to epilogue, prologue or neither is only known for kernels whose
launch lies in a step annotation; an embedding of unknown name is known from its graph launch only;
collectives of a graph that start inside the next layer have no launch of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Analyse
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from splits import Case, Split, assert_right, split_all, wrong_events

from fixtures import Made, Pass, Scenario, kind, kinds, write
from fixtures.scenario import Phase as Doing
from fixtures.scenario import Tamper
from trace_sql.profile import load_profiles

BY_WORDS = {rule.name for rule in load_profiles()["one_norm"].boundaries}
KINDS = [name for name in kinds() if not kind(name).profile and kind(name).rule not in BY_WORDS]
"""Those that are split without a config; test_kinds.py has the others, test_odd_passes.py what
only words bound."""


# Scenarios.


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    launches = draw(st.sampled_from([True, True, True, False]))
    phases: st.SearchStrategy[Doing] = st.sampled_from(["decode", "decode", "prefill", "mixed"])
    return Scenario(
        passes=tuple(Pass(draw(phases)) for _ in range(draw(st.integers(1, 4)))),
        launch=draw(st.sampled_from(["eager", "graph", "piecewise"])),
        world_size=draw(st.integers(1, 2)),
        overlap=draw(st.booleans()),
        side=draw(st.sampled_from(["off", "off", "overlap", "late"])),
        noise_thread=draw(st.sampled_from([0, 0, 3])),
        noise_after=draw(st.sampled_from([0, 0, 2])),
        frames=draw(st.sampled_from(["none", "none", "layers", "modules"])) if launches else "none",
        launches=launches,
        annotations=draw(st.booleans()),
        gpu_annotations=False,
        flows=False,
        seed=draw(st.integers(0, 999)),
    )


def cuts(case: Case, start: float, end: float) -> Case:
    """Cut a case's trace at parts of its device events."""
    n_events = len(case.made().truth.rows or ())
    scenario = replace(case.scenario, cut_start=int(start * n_events), cut_end=int(end * n_events))
    return replace(case, scenario=scenario)


@st.composite
def wholes(draw: st.DrawFn) -> Case:
    layers = draw(st.integers(2, 8))
    told = draw(st.sampled_from([None, layers]))
    return Case(draw(st.sampled_from(KINDS)), layers, draw(scenarios()), told)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    case = draw(wholes())
    parts = st.one_of(st.just(0.0), st.floats(0, 0.6))
    return cuts(case, draw(parts), draw(parts))


@st.composite
def tampered(draw: st.DrawFn) -> Case:
    """Tampered passes, whole or, where a boundary is missing, also cut.

    A cut pass has no count that could contradict it, only its kernels. They tell a boundary too
    many only where one of the two parts of the block is seen whole beside a whole block of the
    same kernels, or lacks the attention that others hold. They cannot where it replaces one of
    the last kernels before a cut, or of a last layer whose final norm is cut and behind which no
    kernel of layers runs; in a kind of block seen only once, as layer 0 of a single pass; or in
    a trace so short that what is left is a whole pass of fewer layers. And where the only
    boundary left of a first pass is missing, nothing tells that there was a pass.
    """
    how: Tamper = draw(st.sampled_from(["shift", "double", "thin"]))
    case = draw(wholes() if how == "double" else st.one_of(wholes(), cases()))
    if case.scenario.cut_start or case.scenario.cut_end or draw(st.booleans()):
        return replace(case, tampered_pass=(how, draw(st.integers(0, 3))))
    return replace(case, scenario=replace(case.scenario, tamper=how))


BATCH = 20
# A failing batch names its case, which is small enough to understand as it is.
searched = settings(max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@searched
@given(st.lists(cases(), min_size=BATCH, max_size=BATCH))
def test_a_split_is_right_or_refused(batch: list[Case]) -> None:
    splits = assert_right(batch)
    for case, split in zip(batch, splits, strict=True):
        scenario = case.scenario
        if case.told is not None and not (scenario.cut_start or scenario.cut_end):
            # Nothing is missing in the trace, so nothing may be refused.
            assert {row["status"] for row in split.passes} == {"complete"}, case
            assert len(split.passes) == len(scenario.passes)


@searched
@given(st.lists(tampered(), min_size=BATCH, max_size=BATCH))
def test_tampered_boundaries_are_refused(batch: list[Case]) -> None:
    assert_right(batch)


@pytest.mark.parametrize("name", KINDS)
def test_a_cut_at_any_point_is_right_or_refused(name: str) -> None:
    """Also where the counts of what is left still divide."""
    whole = Case(name, 2, Scenario(passes=(Pass(), Pass("mixed")), flows=False, world_size=2))
    n_events = len(whole.made().truth.rows or ())
    step = 9 if name.startswith("hf") else 4
    cut = [
        replace(whole.scenario, cut_start=start, cut_end=end)
        for lost in range(1, n_events, step)
        for start, end in ((lost, 0), (0, lost))
    ]
    batch = [replace(whole, told=told, scenario=scenario) for scenario in cut for told in (2, None)]
    splits = assert_right(batch)
    verdicts = Counter(
        split.verdict["verdict"] for case, split in zip(batch, splits, strict=True) if case.told
    )
    assert verdicts["split"] > 0.6 * verdicts.total()


# Cases that were wrong once.

FOUND = {
    "the graph piece with the embedding has no anchor": Case(
        "sglang_qwen3_amd", 5, Scenario(passes=(Pass(),) * 3, launch="piecewise"), told=5
    ),
    "two boundaries of a graph piece look like a model of one layer": Case(
        "vllm_gptoss_amd", 8, Scenario(passes=(Pass(),), launch="piecewise", cut_end=58)
    ),
    "kernels that lead in a boundary that the end of the trace cuts": Case(
        "hf_qwen2_amd", 6, Scenario(passes=(Pass("prefill"),), launch="graph", cut_end=111), told=6
    ),
    "of the next pass only the begin is seen": Case(
        "vllm_gptoss_nvidia",
        6,
        Scenario(passes=(Pass("prefill"), Pass()), cut_start=127, cut_end=111),
        told=6,
    ),
    "the next pass begins without step, launch or known embedding": Case(
        "vllm_gptoss_amd",
        2,
        Scenario(passes=(Pass(),) * 3, cut_start=71, cut_end=37, launches=False),
        told=2,
    ),
    "a q norm stands for the entry norm that is missing": Case(
        "sglang_qwen3_nvidia", 6, Scenario(passes=(Pass("mixed"),) * 2, tamper="shift"), told=6
    ),
    "a boundary is missing in the block that the trace begins in": Case(
        "sglang_llama_nvidia",
        3,
        Scenario(launch="piecewise", tamper="thin", cut_start=24, cut_end=31),
        told=3,
    ),
    "collectives of a piece without anchors run on another stream": Case(
        "sglang_qwen3_amd",
        5,
        Scenario(passes=(Pass(),) * 4, launch="piecewise", world_size=2, side="overlap"),
        told=5,
    ),
    "a step that began before the trace ends where the next one begins": Case(
        "vllm_gptoss_amd", 6, Scenario(world_size=2, side="late", cut_start=19)
    ),
    "a boundary too many stands for the final norm that the end of the trace cuts": Case(
        "vllm_gptoss_amd",
        7,
        Scenario(passes=(Pass(),), launch="piecewise", world_size=2, cut_end=6, seed=49),
        told=7,
        tampered_pass=("double", 2),
    ),
    "a boundary is missing in a pass that the end of the trace cuts": Case(
        "hf_qwen2_nvidia",
        4,
        Scenario(passes=(Pass("prefill"),), launch="graph", annotations=False, cut_end=74),
        told=4,
        tampered_pass=("thin", 0),
    ),
    "a boundary too many in a pass that the begin of the trace cuts": Case(
        "sglang_qwen3_amd",
        3,
        Scenario(
            passes=(Pass("prefill"),) * 3,
            launch="piecewise",
            world_size=2,
            cut_start=50,
            cut_end=24,
        ),
        tampered_pass=("double", 0),
    ),
    "a boundary too many beside a whole pass": Case(
        "hf_qwen2_amd",
        3,
        Scenario(
            passes=(Pass(),) * 4, launch="piecewise", frames="layers", cut_start=93, cut_end=300
        ),
        tampered_pass=("double", 3),
    ),
    "a boundary too many between two cuts": Case(
        "vllm_gptoss_amd",
        3,
        Scenario(passes=(Pass("prefill"),) * 4, launch="graph", cut_start=114, cut_end=102),
        told=3,
        tampered_pass=("double", 3),
    ),
    "a boundary too many before the first attention of a cut pass": Case(
        "vllm_gptoss_nvidia",
        2,
        Scenario(passes=(Pass("mixed"),) * 3, launch="graph", cut_start=87, cut_end=38),
        told=2,
        tampered_pass=("double", 1),
    ),
}


def test_what_was_wrong_once_is_right() -> None:
    assert_right(list(FOUND.values()))


# Look-alikes of real traces: as large, with what makes them hard.


def overlapping(made: Made, name_part: str, layer_no: int) -> Made:
    """Let a kernel that was launched behind the pass run beside a layer of it."""
    rows = made.truth.rows or []
    start = max(made.events[row.event_id]["ts"] for row in rows if row.layer_no == layer_no)
    for row in rows:
        event = made.events[row.event_id]
        if row.region == "outside" and name_part in event["name"]:
            event["ts"] = start - 700
    return made


def written(made: Made, folder: Path) -> Path:
    path = folder / "made.json"
    write(made, path)
    return path


def assert_all_right(case: Case, made: Made, found: Any) -> None:
    split = Split(
        made,
        found.verdict,
        found.passes,
        {
            act["event_id"]: tuple(
                act[key] for key in ("pass_no", "loop_no", "layer_no", "slot", "region")
            )
            for act in found.activities
        },
    )
    assert split.verdict["verdict"] == "split", split.verdict["message"]
    assert wrong_events(case, split) == []
    assert not [row for row in split.passes if row["status"] == "refused"]


def like_sglang_prefill() -> tuple[Case, Made]:
    """Qwen3-8B on AMD, eager: a scheduler's kernel runs beside a layer, on another stream."""
    scenario = Scenario(passes=(Pass("prefill", 1, 1024, 0),), noise_after=2)
    case = Case("sglang_qwen3_amd", 36, scenario)
    return case, overlapping(case.made(), "neg_kernel", 2)


def like_vllm_mixed() -> tuple[Case, Made]:
    """gpt-oss-20b on AMD, a mixed batch: 25 graph pieces, attention and store between them."""
    case = Case("vllm_gptoss_amd", 24, Scenario(passes=(Pass("mixed", 8),), launch="piecewise"))
    made = case.made()
    graphs = [e for e in made.events if e["name"] == "hipGraphLaunch"]
    assert len(graphs) == 25
    return case, made


def like_transformers_cut() -> tuple[Case, Made]:
    """Qwen1.5-0.5B on AMD, eager, 71 rsqrt kernels: the end of one pass, then a whole one."""
    scenario = Scenario(passes=(Pass("prefill", 16, 16 * 559),) * 2, frames="modules")
    whole = Case("hf_qwen2_amd", 24, scenario)
    made = whole.made()
    names = [made.events[row.event_id]["name"] for row in made.truth.rows or ()]
    norms = [position for position, name in enumerate(names) if "rsqrt_kernel" in name]
    case = replace(whole, scenario=replace(scenario, cut_start=norms[-71] - 2))
    made = case.made()
    assert sum("rsqrt_kernel" in event["name"] for event in made.events) == 71
    return case, made


@pytest.mark.parametrize("configured", [False, True], ids=["no config", "config"])
@pytest.mark.parametrize(
    "look_alike", [like_sglang_prefill, like_vllm_mixed, like_transformers_cut]
)
def test_look_alikes_of_real_traces_hold(
    look_alike: Callable[[], tuple[Case, Made]],
    configured: bool,
    analyse: Analyse,
    tmp_path: Path,
) -> None:
    case, made = look_alike()
    config = kind(case.kind).model_config(case.layers)
    found = analyse(written(made, tmp_path), **({"config": config} if configured else {}))
    assert_all_right(replace(case, configured=configured), made, found)
    assert [row["complete"] for row in found.passes][-1]
    assert found.verdict["n_layers"] == case.layers
    if look_alike is like_sglang_prefill:
        (neg,) = [a for a in found.activities if "neg_kernel" in a["name"]]
        layer = [a for a in found.activities if a["layer_no"] == 2]
        assert layer[0]["start_ns"] < neg["start_ns"] < layer[-1]["end_ns"]
        assert neg["region"] == "outside"


def test_pieces_may_run_on_another_stream_than_attention(analyse: Analyse, tmp_path: Path) -> None:
    case, made = like_vllm_mixed()
    eager = ("unified_attention", "reshape_and_cache")
    for event in made.events:
        if event.get("cat") == "kernel" and any(part in event["name"] for part in eager):
            event["tid"] = event["args"]["stream"] = 9
    for told in ({}, {"num_layers": 24}):
        found = analyse(written(made, tmp_path), **told)
        assert_all_right(case, made, found)


def test_kernels_of_two_devices_need_a_choice(analyse: Analyse, tmp_path: Path) -> None:
    case = Case("sglang_llama_nvidia", 4, Scenario(devices=2, world_size=2))
    made = case.made()
    path = written(made, tmp_path)
    found = analyse(path)
    assert found.verdict["verdict"] == "refused"
    assert "choose one with --device" in found.verdict["message"]
    for device in (0, 1):
        found = analyse(path, device=device)
        rows = [row for row in made.truth.rows or () if row.device == device]
        one = replace(made, truth=replace(made.truth, rows=rows))
        assert_all_right(case, one, found)
        assert [row["status"] for row in found.passes] == ["complete", "complete"]


def renamed(made: Made, pass_no: int, anchors: slice, name: str) -> None:
    """Give some of a pass's boundary kernels another name."""
    hits = [
        row.event_id
        for row in made.truth.rows or ()
        if row.pass_no == pass_no and made.events[row.event_id]["name"] in made.truth.anchor_names
    ]
    for event_id in hits[anchors]:
        made.events[event_id]["name"] = name


FUSED = (
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport"
    "<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false>()"
)


@pytest.mark.parametrize("told", [{}, {"num_layers": 4}], ids=["counted", "told"])
@pytest.mark.parametrize("fused", [slice(None), slice(0, None, 2)], ids=["all", "every other"])
def test_passes_may_have_boundaries_of_different_kernels(
    fused: slice, told: dict[str, int], analyse: Analyse, tmp_path: Path
) -> None:
    """A small batch fuses all-reduce and norm, a large one does not: a rule for each pass."""
    case = Case("sglang_llama_nvidia", 4, Scenario(passes=(Pass(), Pass("prefill"), Pass())))
    made = case.made()
    renamed(made, 1, fused, FUSED)
    found = analyse(written(made, tmp_path), **told)
    assert_all_right(case, made, found)
    plain, both = "flashinfer_fused_add_rmsnorm", "allreduce_fusion"
    assert [row["rule"] for row in found.passes] == [plain, both, plain]


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("hf")])
@pytest.mark.parametrize("told", [False, True], ids=["counted", "told"])
def test_passes_without_an_entry_norm_are_refused(name: str, told: bool) -> None:
    case = Case(name, 4, Scenario(tamper="shift", world_size=2), 4 if told else None)
    (split,) = split_all([case])
    assert split.verdict["verdict"] == "refused"


def test_a_wrong_layer_count_is_refused_with_the_nearest_reading() -> None:
    batch = [
        Case(name, 6, Scenario(world_size=2), told=wrong)
        for name in KINDS
        for wrong in (3, 5, 7, 12)
    ]
    for case, split in zip(batch, split_all(batch), strict=True):
        assert split.verdict["verdict"] == "refused", case
        assert "they would fit N=6" in split.verdict["message"], case
        assert {region for *_, region in split.places.values()} == {None}
