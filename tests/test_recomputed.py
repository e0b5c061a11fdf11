"""Every number of the measures, computed again from the file by a plain reading of its JSON.

Given is only what belongs where: by the views for real traces, by construction for made ones.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from conftest import Analyse, Analysed

from fixtures import Made, Pass, Scenario, kind, make, write

DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "fill"}


@dataclass(frozen=True)
class Activity:
    event_id: int
    gpu_index: int
    name: str
    kind: str
    device: int
    stream: int
    start: int
    end: int


Place = tuple[int | None, int | None, str | None]
"""pass_no, layer_no and region"""


def ns(microseconds: int | Decimal | None) -> int:
    """Return exact nanoseconds; the files here have no digits beyond them."""
    exact = Decimal(microseconds or 0) * 1000
    assert exact == int(exact)
    return int(exact)


def activities(path: Path) -> list[Activity]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        events = json.loads(file.read(), parse_float=Decimal)["traceEvents"]
    chosen = [
        (ns(event["ts"]), int(event["tid"]), number, event)
        for number, event in enumerate(events)
        if event.get("ph") == "X" and event.get("cat") in DEVICE
    ]
    chosen.sort(key=lambda row: row[:3])
    return [
        Activity(
            number,
            index,
            event["name"],
            DEVICE[event["cat"]],
            event["args"]["device"],
            event["args"]["stream"],
            start,
            start + ns(event.get("dur")),
        )
        for index, (start, _, number, event) in enumerate(chosen)
    ]


def busy(members: Iterable[Activity]) -> int:
    """Length of the union of intervals, by counting what is open at each end."""
    edges = sorted(edge for one in members for edge in ((one.start, 1), (one.end, -1)))
    total = depth = since = 0
    for time, change in edges:
        if depth > 0:
            total += time - since
        depth += change
        since = time
    return total


def spans(members: list[Activity]) -> dict[str, Any]:
    first = min(members, key=lambda one: one.gpu_index)
    last = max(members, key=lambda one: one.gpu_index)
    start, end = min(one.start for one in members), max(one.end for one in members)
    return {
        "first_event_id": first.event_id,
        "last_event_id": last.event_id,
        "start_ns": start,
        "end_ns": end,
        "wall_ns": end - start,
        "busy_ns": busy(members),
        "sum_dur_ns": sum(one.end - one.start for one in members),
        "n_activities": len(members),
    }


def part(row: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: row[key] for key in keys}


def assert_same(found: Analysed, path: Path, places: dict[int, Place]) -> None:
    acts = activities(path)
    categories = {row["name"]: row["category"] for row in found.rows("from kernel_categories")}

    kernels = found.rows("from kernels order by gpu_index")
    assert len(kernels) == sum(act.kind == "kernel" for act in acts)
    by_id = {act.event_id: act for act in acts}
    for row in kernels:
        act = by_id[row["event_id"]]
        assert part(row, ("gpu_index", "name", "device", "stream", "start_ns", "end_ns")) == {
            "gpu_index": act.gpu_index,
            "name": act.name,
            "device": act.device,
            "stream": act.stream,
            "start_ns": act.start,
            "end_ns": act.end,
        }
        assert row["dur_ns"] == act.end - act.start
        assert (row["pass_no"], row["layer_no"], row["region"]) == places[act.event_id]
        assert row["category"] == categories[act.name]

    in_pass: dict[int, list[Activity]] = defaultdict(list)
    in_layer: dict[tuple[int, int], list[Activity]] = defaultdict(list)
    for act in acts:
        pass_no, layer_no, region = places[act.event_id]
        if pass_no is not None:
            in_pass[pass_no].append(act)
            if region == "layer":
                assert layer_no is not None
                in_layer[pass_no, layer_no].append(act)

    layers = {(row["pass_no"], row["layer_no"]): row for row in found.rows("from layers")}
    assert layers.keys() == in_layer.keys()
    for key, members in in_layer.items():
        expected = spans(members) | {
            "n_kernels": sum(act.kind == "kernel" for act in members),
            "n_comm": sum(categories[act.name] == "comm" for act in members),
        }
        assert part(layers[key], expected) == expected

    sums: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for key, members in in_layer.items():
        for act in members:
            sums[*key, categories[act.name]].append(act.end - act.start)
    assert {
        (row["pass_no"], row["layer_no"], row["category"]): (
            row["sum_dur_ns"],
            row["n_activities"],
        )
        for row in found.rows("from layer_categories")
    } == {key: (sum(times), len(times)) for key, times in sums.items()}

    walls = {
        key: spans(members)["wall_ns"]
        for key, members in in_layer.items()
        if layers[key]["complete"]
    }
    passes = {row["pass_no"]: row for row in found.passes}
    assert passes.keys() == in_pass.keys()
    for pass_no, members in in_pass.items():
        seen = [act for key, more in in_layer.items() if key[0] == pass_no for act in more]
        whole = [wall for key, wall in walls.items() if key[0] == pass_no]
        expected = spans(members) | {
            "n_layers_seen": sum(key[0] == pass_no for key in in_layer),
            "layers_start_ns": min(act.start for act in seen),
            "layers_end_ns": max(act.end for act in seen),
            "avg_layer_ns": pytest.approx(fmean(whole), rel=1e-15) if whole else None,
            "first_layer_ns": walls.get((pass_no, 0)),
        }
        assert part(passes[pass_no], expected) == expected

    clusters: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for key in sorted(walls):
        clusters[key[0], layers[key]["layer_type"]].append(key)
    rows = {(row["pass_no"], row["layer_type"]): row for row in found.rows("from layer_clusters")}
    assert rows.keys() == clusters.keys()
    for cluster, keys in clusters.items():
        measured = [spans(in_layer[key]) for key in keys]
        expected = {
            "n_layers": len(keys),
            "layers": [layer_no for _, layer_no in keys],
            "sum_wall_ns": sum(row["wall_ns"] for row in measured),
            **{
                f"avg_{name}": pytest.approx(fmean(row[name] for row in measured), rel=1e-15)
                for name in ("wall_ns", "busy_ns", "sum_dur_ns")
            },
        }
        assert part(rows[cluster], expected) == expected


@pytest.mark.parametrize("name", ["sglang_qwen3_8b_decode_mi300x", "hf_qwen1_5_0_5b_h100"])
def test_numbers_of_real_traces(name: str, shared: Callable[[str], Path], analyse: Analyse) -> None:
    path = shared(f"traces/{name}.json.gz")
    found = analyse(path)
    assert found.verdict["verdict"] == "split"
    places = {
        act["event_id"]: (act["pass_no"], act["layer_no"], act["region"])
        for act in found.activities
    }
    assert_same(found, path, places)


MADE = {
    "collectives beside the layers": (
        "vllm_gptoss_nvidia",
        Scenario(
            passes=(Pass("prefill", 1, 512), Pass(), Pass()),
            world_size=2,
            side="late",
            noise_thread=4,
            noise_after=2,
        ),
    ),
    "a pass that the begin cuts and graphs": (
        "sglang_qwen3_amd",
        Scenario(passes=(Pass(), Pass("mixed"), Pass()), launch="piecewise", cut_start=70),
    ),
}


def made_places(made: Made) -> dict[int, Place]:
    return {row.event_id: (row.pass_no, row.layer_no, row.region) for row in made.truth.rows or ()}


@pytest.mark.parametrize("name", MADE)
def test_numbers_of_made_traces(name: str, analyse: Analyse, tmp_path: Path) -> None:
    kind_name, scenario = MADE[name]
    made = make(kind(kind_name).model_config(6), kind_name, scenario)
    path = tmp_path / "made.json.gz"
    write(made, path)
    found = analyse(path)
    assert_same(found, path, made_places(made))
    complete = {
        (row["pass_no"], row["layer_no"]): row["complete"] for row in found.rows("from layers")
    }
    assert complete == {
        (one.pass_no, layer.layer_no): layer.complete
        for one in made.truth.passes
        for layer in one.layers
    }
    for row, one in zip(found.passes, made.truth.passes, strict=True):
        assert (row["start_ns"], row["end_ns"]) == (one.start_ns, one.end_ns)
        assert row["complete"] == one.complete
