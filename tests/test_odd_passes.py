"""Passes of models that no rule knows, by plain words: right, or refused, whatever surrounds them.

Nested step markers, heads that run behind them, drafts and verification in one graph launch, ranges
that are no steps, mixed batches, slow first passes, kernels that repeat without a phase.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from conftest import Analyse
from splits import Case, assert_right
from toys import Plan, Toy, Writer, splits, written, wrong

from fixtures import Pass, Scenario

LAUNCHES: tuple[Literal["eager", "graph", "piecewise"], ...] = ("eager", "graph", "piecewise")
SIDES: tuple[Literal["off", "overlap"], ...] = ("off", "overlap")


def drawn(random: Random) -> Toy:
    """Draw a trace: its passes, who marks and launches them, what is lost or missing."""
    layers = random.randint(1, 5)
    named = random.random() < 0.7
    embed = "toy_embed" if random.random() < 0.6 else None
    # Without embedding and head, two passes of one layer in a step look like two layers.
    drafts = random.choice([0, 0, 1, 2, 4]) if named or embed or layers > 1 else 0
    target = Plan(
        layers,
        *random.choice([("toy_attn", "toy_mlp_gemm"), ("toy_mla_attn", "toy_moe_gemm")]),
        embed,
        random.choice([None, None, None, "toy_norm", "toy_final_norm"]),
        ("toy_lm_head_gemm" if named else "k_gemm", *random.choice([(), ("toy_accept_tokens",)])),
        late_head=random.random() < 0.4 and not drafts,
    )
    draft = Plan(
        random.randint(1, layers),
        *random.choice([(target.attn, target.ffn), ("toy_mha_attn", "toy_mlp_gemm")]),
        embed if not named or random.random() < 0.8 else None,
        head=("toy_draft_head_gemm" if named else "k_gemm",),
        kind="draft",
        step=(),
    )
    if draft.layers == layers:
        draft = replace(draft, kind="target")
    rounds = random.randint(1, 3)
    plans = (target, *(draft,) * drafts) * rounds
    n_kernels = sum(3 * plan.layers + 2 for plan in plans)
    names = {"norm": "toy_norm", "other": "k_other", "twice": "toy_attn"}
    tamper = random.choice(["none", "none", "norm", "other", "twice"])
    if layers == 1 and tamper == "norm":
        # Nothing contradicts a layer that is seen once.
        tamper = "none"
    return Toy(
        plans,
        graph=random.random() < 0.5,
        marked=random.random() < 0.7,
        compiled=random.random() < 0.3,
        noise=random.choice([0, 0, 2]),
        told=random.choice(
            [None, None, layers, layers, layers + 1, layers + drafts * draft.layers]
        ),
        cut_start=random.choice([0, 0, 0, random.randint(1, n_kernels // 2)]),
        cut_end=random.choice([0, 0, 0, random.randint(1, n_kernels // 2)]),
        renamed={random.randrange(n_kernels): names[tamper]} if tamper in names else {},
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_split_by_words_is_right_or_refused(seed: int) -> None:
    random = Random(seed)
    for out, split in splits([drawn(random) for _ in range(60)]):
        assert wrong(out, split) == [], (seed, out.toy)


VERIFY = Plan(
    3,
    "toy_mla_attn",
    "toy_moe_gemm",
    "toy_embed",
    head=("toy_lm_head_gemm", "toy_accept_tokens"),
    step=("step[DECODE bs=1]",),
)
DRAFT = Plan(
    1, "toy_mha_attn", embed="toy_embed", head=("toy_draft_head_gemm",), kind="draft", step=()
)
NESTED = Plan(late_head=True)
EXTEND = replace(
    NESTED, step=("step[EXTEND bs=2 toks=64]", "execute_context_2(64)_generation_0(0)")
)


def exactly() -> dict[str, Toy]:
    found: dict[str, Toy] = {}
    for graph in (False, True):
        for layers in (1, 2, 6):
            for told in (None, layers):
                words = f"{layers} layers, told {told}, graph {graph}"
                nested = replace(NESTED, layers=layers)
                plans = (replace(EXTEND, layers=layers), nested, nested)
                found[f"nested, {words}"] = Toy(plans, graph, compiled=not graph, told=told)
                found[f"final norm, {words}"] = Toy(
                    tuple(replace(plan, final="toy_norm") for plan in plans), graph, told=told
                )
        for layers, drafts, rounds in ((3, 2, 1), (2, 1, 2), (5, 4, 3)):
            for told in (None, layers):
                words = f"{layers} layers, {drafts} drafts, told {told}, graph {graph}"
                target = replace(VERIFY, layers=layers)
                found[words] = Toy((target, *(DRAFT,) * drafts) * rounds, graph, told=told)
                alike = replace(DRAFT, attn=VERIFY.attn, ffn=VERIFY.ffn)
                found[f"alike, {words}"] = Toy((target, *(alike,) * drafts) * rounds, graph)
                found[f"noise, {words}"] = Toy(
                    (target, *(DRAFT,) * drafts) * rounds, graph, noise=2
                )
    return found


def test_nested_markers_late_heads_and_drafts_are_split_exactly() -> None:
    toys = exactly()
    for name, (out, split) in zip(toys, splits(list(toys.values())), strict=True):
        assert wrong(out, split, exact=True) == [], name


def test_a_wrong_layer_count_is_refused() -> None:
    """The sum of target and drafts, too: never five layers a pass."""
    plans = (VERIFY, DRAFT, DRAFT)
    for _, split in splits(
        [Toy(plans, graph, told=told) for graph in (False, True) for told in (2, 4, 5)]
    ):
        assert split.verdict["verdict"] == "refused"
        assert "--num-layers" in split.verdict["message"]


def test_drafts_without_embedding_and_head_are_not_layers_of_the_target() -> None:
    plans = tuple(replace(plan, embed=None, head=("k_gemm",)) for plan in (VERIFY, DRAFT, DRAFT))
    toys = [Toy(plans, graph, told=told) for graph in (False, True) for told in (None, 3, 5)]
    for out, split in splits(toys):
        assert split.verdict["verdict"] == "refused", out.toy


def test_without_markers_heads_tell_passes_apart() -> None:
    """Of the first pass nothing proves the begin."""
    (only, named) = splits(
        [
            Toy((NESTED,) * 3, marked=False, compiled=True),
            Toy((replace(NESTED, embed="toy_embed"),) * 3, marked=False, compiled=True),
        ]
    )
    assert [row["status"] for row in only[1].passes] == ["cut_start", "complete", "complete"]
    assert {row["n_layers_seen"] for row in only[1].passes} == {2}
    assert wrong(*only) == []
    assert wrong(*named, exact=True) == []


def test_the_maker_s_traces_of_such_models_are_split() -> None:
    cases = [
        Case(
            name,
            3,
            Scenario(
                passes=(Pass("prefill"), Pass(), Pass()),
                launch=launch,
                annotations=annotations,
                side=side,
                world_size=2,
                noise_thread=3,
                flows=False,
            ),
            told,
        )
        for name in ("one_norm_sglang_nvidia", "one_norm_sglang_nvidia_final")
        for launch in LAUNCHES
        for annotations, side, told in ((True, SIDES[0], None), (False, SIDES[1], 3))
    ]
    for split in assert_right(cases):
        assert {row["status"] for row in split.passes} == {"complete"}
        assert {row["confidence"] for row in split.passes} == {"words"}


def test_ranges_that_are_no_steps_make_no_passes() -> None:
    names = ("optimizer.step", "cudnn: conv", "nccl:all_reduce", "ProfilerStep#3", "Iteration 7")
    plans = tuple(replace(NESTED, embed="toy_embed", step=(name,)) for name in names)
    ((out, split),) = splits([Toy(plans, compiled=True)])
    assert wrong(out, split, exact=True) == []
    assert {row["step_name"] for row in split.passes} == {None}
    assert {row["phase"] for row in split.passes} == {None}


def test_nested_markers_are_one_step_with_one_load() -> None:
    mixed = replace(NESTED, step=("step[MIXED bs=3 toks=66]",))
    ((_, split),) = splits([Toy((EXTEND, NESTED, mixed))])
    found = [
        (row["phase"], row["phase_source"], row["batch_size"], row["n_tokens"])
        for row in split.passes
    ]
    assert found == [
        ("prefill", "annotation", 2, 64),
        ("decode", "annotation", 2, 2),
        ("mixed", "annotation", 3, 66),
    ]
    # Three kernels of 10 us a layer, and a head of 80.
    assert {row["busy_ns"] for row in split.passes} == {140_000}


def saved(out: Writer, path: Path) -> Path:
    events = [
        {**event, "ts": event["ts"] / 1_000, "dur": event["dur"] / 1_000} for event in out.events
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_a_slow_start_is_named_and_not_deleted(tmp_path: Path, analyse: Analyse) -> None:
    out = written(Toy((replace(NESTED, embed="toy_embed"),) * 12))
    first = next(event for event in out.events if event["name"] == "toy_attn")
    for event in out.events:
        if event["ts"] > first["ts"]:
            event["ts"] += 3_000_000
    first["dur"] = 3_000_000
    found = analyse(saved(out, tmp_path / "slow.json"))
    assert [row["status"] for row in found.passes] == ["complete"] * 12
    assert found.passes[0]["first_layer_ns"] > 50 * found.passes[5]["first_layer_ns"]
    changes = found.rows("from pass_changes order by pass_no")
    assert changes[1]["change_pct"] < -90
    steady = {row["pass_no"] for row in found.rows("from steady_passes")}
    assert steady and 0 not in steady


def test_kernels_that_repeat_without_a_phase(tmp_path: Path, analyse: Analyse) -> None:
    """Nothing in them attends or decodes: an anchor is proposed, and no stage is made up."""
    plan = Plan(8, "k_two", "k_three", "k_start", head=("k_end",), step=("denoise",))
    out = written(Toy((plan,) * 4))
    for event in out.events:
        event["name"] = event["name"].replace("toy_norm", "k_one")
    path = saved(out, tmp_path / "repeats.json")
    unknown = analyse(path)
    assert unknown.verdict["verdict"] == "refused"
    (best,) = unknown.rows("from anchor_proposals where rank = 1")
    assert best["n_layers"] == 8
    words = shlex.split(best["options"])
    given = dict(zip(words[::2], words[1::2], strict=True))
    split = analyse(
        path,
        anchor_kernel=given["--anchor-kernel"],
        blocks_per_layer=int(given["--blocks-per-layer"]),
        num_layers=int(given["--num-layers"]),
        anchor_offset=int(given["--anchor-offset"]),
    )
    assert split.verdict["verdict"] == "split"
    assert {(row["phase"], row["n_layers"]) for row in split.passes} == {(None, 8)}


def test_the_shared_nested_markers(shared: Callable[[str], Path], analyse: Analyse) -> None:
    found = analyse(shared("cases/27_nested_step_markers.json"))
    assert [
        (row["phase"], row["batch_size"], row["n_tokens"], row["n_layers"], row["busy_ns"])
        for row in found.passes
    ] == [("prefill", 2, 64, 2, 200_000), ("decode", 2, 2, 2, 200_000)]
    assert {row["complete"] for row in found.passes} == {True}
    regions = Counter(row["region"] for row in found.activities)
    assert regions == {"layer": 12, "epilogue": 2}


def test_a_named_anchor_splits_them_too(shared: Callable[[str], Path], analyse: Analyse) -> None:
    path = shared("cases/27_nested_step_markers.json")
    found = analyse(path, anchor_kernel="toy_norm", blocks_per_layer=1)
    assert [row["status"] for row in found.passes] == ["complete"] * 2
    assert {row["n_layers"] for row in found.passes} == {2}


@pytest.mark.parametrize("told", [None, 3])
def test_the_shared_draft_and_verify(
    told: int | None, shared: Callable[[str], Path], analyse: Analyse
) -> None:
    found = analyse(shared("cases/38_draft_and_verify_in_one_graph.json"), num_layers=told)
    assert [(row["kind"], row["n_layers"], row["phase"]) for row in found.passes] == [
        ("target", 3, "verify"),
        ("draft", 1, "draft"),
        ("draft", 1, "draft"),
    ]
    assert {row["step_name"] for row in found.passes} == {"step[DECODE bs=1]"}
    places = [(row["pass_no"], row["layer_no"]) for row in found.activities]
    assert places == [
        *((0, layer) for layer in (None, 0, 0, 0, 1, 1, 1, 2, 2, 2, None, None)),
        *((draft, layer) for draft in (1, 2) for layer in (None, 0, 0, 0, None)),
    ]
