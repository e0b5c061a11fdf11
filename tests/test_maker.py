"""The trace maker's truth is read again from the events, and its kinds from real traces."""

from __future__ import annotations

import gc
import gzip
import json
import re
import tracemalloc
import zlib
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fixtures as made_traces
from fixtures import (
    Made,
    Pass,
    PassTruth,
    Scenario,
    make,
    serving,
    truth_path,
    write,
    write_big,
    write_ranks,
)
from fixtures.__main__ import DEMO, write_demo
from fixtures.kinds import PARTS, SEQUENCES
from fixtures.order import layer_tags

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
KINDS = made_traces.kinds()
LOOPED = [name for name in KINDS if made_traces.kind(name).visits.loops]
DRAFTED = [name for name in KINDS if made_traces.kind(name).draft]
Event = dict[str, Any]


def small(kind: str, scenario: Scenario, layers: int = 3) -> Made:
    if not may_loop(kind):
        passes = tuple(replace(plan, loops=None) for plan in scenario.passes)
        scenario = replace(scenario, loops=1, passes=passes)
    return make(made_traces.kind(kind).model_config(layers), kind, scenario)


def may_loop(kind: str) -> bool:
    """Whether a kind can loop: by its config, or as its layers do not say where they stand."""
    return kind.startswith(("hf_", "sglang_", "vllm_")) or kind in LOOPED


def device_events(made: Made) -> list[Event]:
    return [e for e in made.events if e["ph"] == "X" and e["cat"] in DEVICE]


def host_events(made: Made) -> list[Event]:
    host = {"python_function", "cuda_runtime", "cuda_driver", "user_annotation"}
    return [e for e in made.events if e["ph"] == "X" and e["cat"] in host]


# Real traces: the same kernels in the same order.

REAL = {
    "sglang_qwen3_8b_decode_mi300x": ("sglang_qwen3_amd", 36, Pass("decode", 32), 1),
    "vllm_gpt_oss_20b_decode_mi300x": ("vllm_gptoss_amd", 24, Pass("decode", 32), 1),
    "vllm_gpt_oss_120b_prefill_b200": ("vllm_gptoss_nvidia", 36, Pass("prefill", 1, 888), 8),
    "hf_qwen1_5_0_5b_h100": ("hf_qwen2_nvidia", 24, Pass("prefill", 16, 16 * 559), 1),
}


@pytest.mark.parametrize("trace", REAL)
def test_a_pass_has_the_kernels_of_the_real_one(trace: str) -> None:
    path = SHARED / "traces" / f"{trace}.json.gz"
    if not path.is_file():
        pytest.skip("the shared real traces are not beside this checkout")
    golden = json.loads((SHARED / "golden" / f"{trace}.json").read_text())
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    real = [e for e in events if e["ph"] == "X" and e.get("cat") in DEVICE]
    real.sort(key=lambda e: (e["ts"], e["tid"]))
    golden_pass = golden["passes"][-1]
    real = real[golden_pass["first_gpu_index"] : golden_pass["last_gpu_index"] + 1]
    main = Counter(e["tid"] for e in real).most_common(1)[0][0]
    expected = [e["name"] for e in real if e["tid"] == main]

    kind, layers, plan, world = REAL[trace]
    made = small(kind, Scenario(passes=(plan,), world_size=world), layers)
    rows = {row.event_id: row for row in made.truth.rows or []}
    inside = [i for i, row in rows.items() if row.region != "outside"]
    assert [made.events[i]["name"] for i in inside] == expected
    for layer in golden_pass["layers"]:
        count = sum(row.layer_no == layer["layer"] for row in rows.values())
        assert count == layer["n_kernels"]


# Every scenario.

scenarios = st.builds(
    Scenario,
    passes=st.lists(
        st.builds(
            Pass,
            phase=st.sampled_from(["prefill", "decode", "mixed", "verify"]),
            requests=st.integers(1, 64),
            slow=st.sampled_from([1.0, 3.0]),
            loops=st.sampled_from([None, None, 3]),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    launch=st.sampled_from(["eager", "graph", "piecewise"]),
    loops=st.integers(1, 2),
    world_size=st.integers(1, 2),
    devices=st.integers(1, 2),
    overlap=st.booleans(),
    seed=st.integers(0, 3),
    side=st.sampled_from(["off", "overlap", "late"]),
    noise_thread=st.integers(0, 2),
    noise_after=st.integers(0, 2),
    launches=st.booleans(),
    frames=st.sampled_from(["none", "layers", "modules"]),
    annotations=st.booleans(),
    gpu_annotations=st.booleans(),
    flows=st.booleans(),
    names=st.booleans(),
    header=st.booleans(),
    epoch=st.booleans(),
)
calm = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@calm
@given(st.sampled_from(KINDS), st.integers(1, 4), scenarios)
def test_rows_name_every_device_event_once(kind: str, layers: int, scenario: Scenario) -> None:
    made = small(kind, scenario, layers)
    ids = [i for i, e in enumerate(made.events) if e["ph"] == "X" and e.get("cat") in DEVICE]
    rows = made.truth.rows
    assert rows is not None
    assert [row.event_id for row in rows] == ids
    for row in rows:
        assert row.device == made.events[row.event_id]["args"]["device"]
        assert (row.region == "layer") == (row.layer_no is not None) == (row.slot is not None)
        assert row.region != "layer" or row.loop_no is not None
        assert (row.region == "outside") == (row.pass_no is None)


def visited(kind: str, layers: int, loops: int) -> list[tuple[int, int]]:
    """List (visit, layer) in the order in which a whole pass visits them, by hand."""
    if kind.startswith("huginn"):
        prelude, coda = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (2, 1)}.get(layers, (2, 2))
        core = range(prelude, layers - coda)
        order = [*range(prelude), *list(core) * loops, *range(layers - coda, layers)]
    elif kind.startswith("hrm"):
        low, high = list(range(layers)), list(range(layers, 2 * layers))
        order = (low * 3 + high) * loops
    else:
        order = list(range(layers)) * loops
    return [(order[:place].count(layer), layer) for place, layer in enumerate(order)]


def expected_hits(spec: made_traces.Kind, one: PassTruth, layers: int) -> int:
    """Count a whole pass's boundary kernels by the kind's formula."""
    own = layer_tags(spec.model_config(layers), spec)
    tagged = Counter(tag for visit in one.layers for tag in own[visit.layer_no])
    runs = layers if not spec.name.startswith("huginn") else layers - visited_once(layers)
    tagged["loop_first"] = len(one.layers) // runs
    return spec.hits(len(one.layers), tagged)


def visited_once(layers: int) -> int:
    return sum({1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (2, 1)}.get(layers, (2, 2)))


@calm
@given(st.sampled_from(KINDS), st.integers(1, 4), scenarios)
def test_passes_are_whole_and_in_order(kind: str, layers: int, scenario: Scenario) -> None:
    made = small(kind, scenario, layers)
    truth = made.truth
    spec = made_traces.kind(kind)
    plans = [plan for plan in scenario.passes for _ in range(scenario.devices)]
    assert len(truth.passes) == len(plans)
    for one in truth.passes:
        assert one.complete
        mine = [
            (made.events[row.event_id], row)
            for row in truth.rows or []
            if (row.device, row.pass_no) == (one.device, one.pass_no)
        ]
        assert len(mine) == one.n_events
        assert one.start_ns == min(e["ts"] for e, _ in mine)
        assert one.end_ns == max(e["ts"] + e["dur"] for e, _ in mine)
        assert made.events[one.first_event]["ts"] == one.start_ns
        loops = scenario.passes[one.pass_no].loops or scenario.loops
        assert one.loops == (loops if may_loop(kind) else 1)
        visits = [(visit.loop_no, visit.layer_no) for visit in one.layers]
        assert visits == visited(kind, layers, one.loops)
        for visit in one.layers:
            here = (visit.loop_no, visit.layer_no)
            count = sum((row.loop_no, row.layer_no) == here for _, row in mine)
            assert (visit.complete, visit.n_events) == (True, count)

        anchors = sum(e["name"] in truth.anchor_names for e, _ in mine)
        assert anchors == one.anchor_hits == expected_hits(spec, one, layers)
        again = spec.anchors.get("entry_tag") == "loop_first"
        assert one.entry_hits == len(truth.entry_names) * (one.loops if again else 1)

        main = sorted(
            ((e["ts"], row) for e, row in mine if e["tid"] == spec.streams["main"]),
            key=lambda pair: pair[0],
        )
        if spec.loop_start or spec.loop_end:
            continue
        place = {visit: number for number, visit in enumerate(visits)}
        region = {"prologue": 0, "layer": 1, "epilogue": 2}
        order = [
            (
                region[row.region],
                place.get((row.loop_no or 0, row.layer_no or 0), 0),
                spec.slots.index(row.slot) if row.slot else 0,
            )
            for _, row in main
        ]
        assert order == sorted(order)


@calm
@given(st.sampled_from(KINDS), st.integers(1, 4), scenarios)
def test_time_is_possible(kind: str, layers: int, scenario: Scenario) -> None:
    made = small(kind, scenario, layers)
    streams = defaultdict(list)
    for event in device_events(made):
        streams[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    for events in streams.values():
        events.sort()
        for (start, dur), (following, _) in zip(events, events[1:], strict=False):
            assert start + dur <= following

    threads = defaultdict(list)
    for event in host_events(made):
        threads[event["tid"]].append((event["ts"], -event["dur"]))
    for calls in threads.values():
        open_until: list[int] = []
        for start, minus_dur in sorted(calls):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start - minus_dur <= open_until[-1]
            open_until.append(start - minus_dur)

    launched = {
        e["args"]["correlation"]: e for e in host_events(made) if "correlation" in e["args"]
    }
    for event in device_events(made):
        call = launched.get(event["args"]["correlation"])
        assert (call is not None) == scenario.launches
        assert call is None or call["ts"] + call["dur"] <= event["ts"]


@calm
@given(st.sampled_from(KINDS), st.integers(1, 3), scenarios)
def test_launches_stand_in_the_module_of_their_layer(
    kind: str, layers: int, scenario: Scenario
) -> None:
    frames = "layers" if scenario.frames == "none" else scenario.frames
    scenario = replace(scenario, launch="eager", launches=True, frames=frames)
    made = small(kind, scenario, layers)
    layer_class = made_traces.kind(kind).layer_class
    calls = {e["args"]["correlation"]: e for e in host_events(made) if "correlation" in e["args"]}
    modules = [e for e in made.events if e["name"].startswith(f"nn.Module: {layer_class}_")]
    for row in made.truth.rows or []:
        call = calls[made.events[row.event_id]["args"]["correlation"]]
        around = [
            m["args"]["Python module id"]
            for m in modules
            if m["tid"] == call["tid"] and m["ts"] <= call["ts"] < m["ts"] + m["dur"]
        ]
        assert around == ([] if row.layer_no is None else [row.layer_no])


@calm
@given(
    st.sampled_from(KINDS), scenarios, st.integers(0, 300), st.integers(0, 300), st.integers(1, 3)
)
def test_a_cut_takes_what_lies_outside(
    kind: str, scenario: Scenario, first: int, last: int, layers: int
) -> None:
    whole = small(kind, scenario, layers)
    starts = sorted(e["ts"] for e in device_events(whole))
    first, last = min(first, len(starts) // 2), min(last, len(starts) // 2 - 1)
    cut = small(kind, replace(scenario, cut_start=first, cut_end=last), layers)
    begin = starts[first] if first else starts[0]
    end = starts[-last] if last else starts[-1] + 1
    kept = [e for e in device_events(whole) if begin <= e["ts"] < end]
    assert [e["ts"] for e in device_events(cut)] == [e["ts"] for e in kept]
    for event in host_events(cut):
        assert not first or event["ts"] >= begin
        assert not last or event["ts"] + event["dur"] <= end

    left: Counter[tuple[int, int | None]] = Counter()
    lost: Counter[tuple[int, int | None]] = Counter()
    early: set[tuple[int, int | None]] = set()
    for row in whole.truth.rows or []:
        key = (row.device, row.pass_no)
        start = whole.events[row.event_id]["ts"]
        (left if begin <= start < end else lost)[key] += 1
        if start < begin:
            early.add(key)
    by_device: dict[int, int] = defaultdict(int)
    for key in sorted(k for k in left if k[1] is not None):
        device = key[0]
        one = next(
            p for p in cut.truth.passes if (p.device, p.pass_no) == (device, by_device[device])
        )
        by_device[device] += 1
        assert one.n_events == left[key]
        assert one.complete == (lost[key] == 0)
        assert (one.cut in ("start", "both")) == (key in early)
    assert sum(by_device.values()) == len(cut.truth.passes)


# What a scenario changes.


def graph_launches(made: Made) -> list[Event]:
    return [e for e in host_events(made) if e["name"] in ("cudaGraphLaunch", "hipGraphLaunch")]


@pytest.mark.parametrize("kind", ["sglang_qwen3_amd", "vllm_gptoss_nvidia"])
def test_one_graph_launch_carries_a_pass(kind: str) -> None:
    made = small(kind, Scenario(launch="graph", frames="modules"))
    launched = [e["args"]["correlation"] for e in graph_launches(made)]
    assert len(launched) == len(made.truth.passes) == 2
    for row in made.truth.rows or []:
        correlation = made.events[row.event_id]["args"]["correlation"]
        if row.region in ("prologue", "layer"):
            assert correlation == launched[row.pass_no or 0]
        if row.region == "outside":
            assert correlation not in launched
    assert not any("DecoderLayer" in e["name"] or "Block_" in e["name"] for e in made.events)


def test_a_graph_piece_crosses_layer_borders() -> None:
    made = small("vllm_gptoss_amd", Scenario(passes=(Pass(),), launch="piecewise"), layers=24)
    pieces: dict[int, set[int]] = {e["args"]["correlation"]: set() for e in graph_launches(made)}
    assert len(pieces) == 25
    for row in made.truth.rows or []:
        correlation = made.events[row.event_id]["args"]["correlation"]
        if row.layer_no is not None and correlation in pieces:
            pieces[correlation].add(row.layer_no)
    assert sum(len(layers) == 2 for layers in pieces.values()) == 23


def test_a_late_collective_starts_in_the_next_layer() -> None:
    made = small("sglang_llama_nvidia", Scenario(world_size=2, side="late", passes=(Pass(),)))
    side = made_traces.kind("sglang_llama_nvidia").streams["side"]
    starts: dict[int, int] = {}
    late = []
    for row in made.truth.rows or []:
        event = made.events[row.event_id]
        if row.layer_no is not None and event["tid"] != side:
            starts[row.layer_no] = min(event["ts"], starts.get(row.layer_no, event["ts"]))
        elif row.layer_no is not None:
            late.append((row.layer_no, event["ts"]))
    assert sum(ts > starts[layer + 1] for layer, ts in late if layer + 1 in starts) == 2


def test_noise_runs_beside_a_layer_and_belongs_to_no_pass() -> None:
    made = small("sglang_qwen3_amd", Scenario(noise_thread=2, noise_after=1, launch="graph"))
    noise = made_traces.kind("sglang_qwen3_amd").streams["noise"]
    rows = {row.event_id: row for row in made.truth.rows or []}
    disturbing = [i for i in rows if made.events[i]["tid"] == noise]
    assert len(disturbing) == 3 * 2
    assert {rows[i].region for i in disturbing} == {"outside"}
    within = [
        i
        for i in disturbing
        if any(p.start_ns < made.events[i]["ts"] < p.end_ns for p in made.truth.passes)
    ]
    assert len(within) == 2 * 2
    launching = {
        e["args"]["correlation"]: e["tid"] for e in host_events(made) if "cid" in e["args"]
    }
    assert len({launching[made.events[i]["args"]["correlation"]] for i in within}) == 1
    assert launching[made.events[within[0]]["args"]["correlation"]] != 4000


@pytest.mark.parametrize("kind", KINDS)
def test_tampering_moves_the_counts_of_boundary_kernels(kind: str) -> None:
    passes = (Pass(loops=2),)
    spec = made_traces.kind(kind)
    plain = small(kind, Scenario(passes=passes), 8).truth.passes[0]
    whole = expected_hits(spec, plain, 8)
    hits = {
        tamper: (one.entry_hits, one.anchor_hits)
        for tamper in ("none", "shift", "double", "thin")
        for one in small(kind, Scenario(passes=passes, tamper=tamper), 8).truth.passes
    }
    entry = plain.entry_hits
    assert hits["none"] == (entry, whole)
    assert hits["shift"] == ((entry - 1, whole) if entry else (0, whole - 1))
    assert hits["double"][1] > whole > hits["thin"][1]
    assert small(kind, Scenario(tamper="thin")).truth.expect == "refuse or exact"


def test_a_cold_pass_is_slow_and_a_longer_context_costs() -> None:
    made = small("sglang_qwen3_amd", Scenario(passes=serving(), launch="graph", jitter=0))
    took = [one.end_ns - one.start_ns for one in made.truth.passes]
    assert [one.phase for one in made.truth.passes] == ["prefill"] + ["decode"] * 7
    assert took[0] > 3 * took[-1]
    assert took[1] < took[2] < took[3] < took[4] <= took[5] <= took[6] <= took[7]


@pytest.mark.parametrize(
    ("kind", "plan", "name"),
    [
        ("vllm_gptoss_nvidia", Pass("decode", 32), "execute_context_0(0)_generation_32(32)"),
        ("vllm_gptoss_nvidia", Pass("prefill", 1, 888), "execute_context_1(888)_generation_0(0)"),
        ("vllm_gptoss_nvidia", Pass("mixed", 4, 515), "execute_context_1(512)_generation_3(3)"),
        ("sglang_qwen3_amd", Pass("decode", 32), "step[DECODE bs=32]"),
        ("sglang_qwen3_amd", Pass("prefill", 2, 4096), "step[EXTEND bs=2 toks=4096]"),
        ("sglang_qwen3_amd", Pass("mixed", 3, 66), "step[MIXED bs=3 toks=66]"),
        ("hf_qwen2_nvidia", Pass("prefill", 2, 64), "ProfilerStep#0"),
    ],
)
def test_steps_are_named_as_the_framework_names_them(kind: str, plan: Pass, name: str) -> None:
    made = small(kind, Scenario(passes=(plan,)))
    found = {e["cat"]: e for e in made.events if e["name"] == name}
    assert set(found) == {"user_annotation", "gpu_user_annotation"}
    gpu, one = found["gpu_user_annotation"], made.truth.passes[0]
    assert gpu["ts"] <= one.start_ns
    assert gpu["ts"] + gpu["dur"] >= one.end_ns


def test_module_numbers_are_those_of_instances() -> None:
    made = small("sglang_qwen3_amd", Scenario(frames="modules"))
    names = Counter(e["name"] for e in made.events if e["name"].startswith("nn.Module"))
    # 4 norms a layer and the final one; one shared rotary embedding; each called once a pass.
    assert {n for n in names if "RMSNorm" in n} == {f"nn.Module: RMSNorm_{i}" for i in range(13)}
    assert names["nn.Module: RMSNorm_12"] == 2
    assert names["nn.Module: RotaryEmbedding_0"] == 2 * 3
    frames = {e["args"]["Python id"]: e for e in made.events if "Python id" in e.get("args", {})}
    for frame in frames.values():
        parent = frame["args"]["Python parent id"]
        if parent is not None:
            around = frames[parent]
            assert around["ts"] < frame["ts"]
            assert frame["ts"] + frame["dur"] < around["ts"] + around["dur"]


# Files.


@pytest.mark.parametrize("epoch", [False, True])
def test_the_file_has_the_exact_nanoseconds(tmp_path: Path, epoch: bool) -> None:
    made = small("sglang_llama_nvidia", Scenario(epoch=epoch, seed=5))
    text = write(made, tmp_path / "t.json").read_text()
    for number in re.findall(r'"(?:ts|dur)": ([^,}]+)', text):
        assert re.fullmatch(r"\d+\.\d{3}", number)
    read = json.loads(text, parse_float=Decimal)
    assert list(read)[-1] == "traceEvents"
    assert {k: v for k, v in read.items() if k != "traceEvents"} == made.metadata
    assert ("baseTimeNanoseconds" in read) != epoch
    assert len(read["traceEvents"]) == len(made.events)
    for event, expected in zip(read["traceEvents"], made.events, strict=True):
        times = {k: v * 1000 for k, v in event.items() if k in ("ts", "dur")}
        assert event["name"] == expected["name"]
        assert times == {k: v for k, v in expected.items() if k in ("ts", "dur")}
    assert (read["traceEvents"][0]["ts"] > 1_700_000_000_000_000) == epoch


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> bytes:
        made = small("vllm_gptoss_amd", Scenario(seed=seed, frames="modules"))
        return write(made, tmp_path / name).read_bytes()

    first = content("a.json.gz", 1)
    assert first == content("another name.json.gz", 1)
    assert first != content("c.json.gz", 2)
    assert first[4:8] == bytes(4)


def test_ranks_are_files_of_one_run(tmp_path: Path) -> None:
    config = made_traces.kind("sglang_llama_nvidia").model_config(2)
    mades = made_traces.make_ranks(config, "sglang_llama_nvidia", Scenario(world_size=2))
    paths = write_ranks(mades, tmp_path, "17")
    assert [path.name for path in paths] == ["17-TP-0.trace.json.gz", "17-TP-1.trace.json.gz"]
    starts = []
    for rank, path in enumerate(paths):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        info = trace["distributedInfo"]
        assert (info["rank"], info["world_size"]) == (rank, 2)
        starts.append([e["ts"] for e in trace["traceEvents"] if e.get("cat") == "kernel"])
        truth = json.loads(truth_path(path).read_text())
        assert truth["rank"] == rank
        row = dict(zip(truth["columns"], truth["rows"][-1], strict=True))
        assert trace["traceEvents"][row["event_id"]]["cat"] in DEVICE
    assert starts[0] != starts[1]
    assert len(starts[0]) == len(starts[1])


def test_a_big_trace_streams(tmp_path: Path) -> None:
    kind = made_traces.kind("sglang_llama_nvidia")
    scenario = Scenario(passes=(Pass(), Pass("prefill", 1, 64)), frames="modules")
    peaks = []
    for megabytes in (0.6, 1.8):
        path = tmp_path / "big.json"
        gc.collect()
        tracemalloc.start()
        count = write_big(kind.model_config(8), kind, scenario, path, megabytes)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert megabytes * 1e6 <= path.stat().st_size < megabytes * 1e6 + 600_000
    # Three times the file; what else the process keeps moves a peak by a quarter.
    assert peaks[1] < 1.6 * peaks[0]
    events = json.loads(path.read_text())["traceEvents"]
    truth = json.loads(truth_path(path).read_text())
    assert len(events) == count
    assert truth["rows"] is None
    assert [one["pass_no"] for one in truth["passes"]] == list(range(len(truth["passes"])))
    for one in truth["passes"]:
        assert events[one["first_event"]]["name"].startswith("void at::native::vectorized_gather")
        assert events[one["first_event"]]["ts"] * 1000 == pytest.approx(one["start_ns"])


def test_the_shipped_demo_is_what_the_command_writes(tmp_path: Path) -> None:
    write_demo(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in DEMO.iterdir())
    for path in DEMO.iterdir():
        committed, again = path.read_bytes(), (tmp_path / path.name).read_bytes()
        if path.suffix == ".gz":
            assert path.stat().st_size < 150_000
            # zlib-ng packs the same content into other bytes.
            if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
                assert again == committed
            committed, again = gzip.decompress(committed), gzip.decompress(again)
        assert again == committed


# Data and errors.


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_uses_what_it_names(name: str) -> None:
    kind = made_traces.kind(name)
    config = kind.model_config(4)
    tags = {"first", "later", "loop_first", "loop_later", "prelude", "core", "coda"}
    tags |= {"visit0", "revisit", "more_runs", "last_run", "stack0", "stack1"}
    tags |= {"target", "draft", "prefill", "decode", "verify", "tp", "nvidia", "amd"}
    tags |= {"layer0", "inner", "final"}.union(*(tagging.words for tagging in kind.tags))
    tags = tags.union(*layer_tags(config, kind))
    both = [kind] if kind.draft is None else [kind, kind.draft]
    used = {
        use for one in both for part in PARTS for step in getattr(one, part) for use in step.uses
    }
    assert all(use.tags <= tags for use in used)
    assert kind.repeated <= {use.kernel.alias for use in used}
    assert kind.entry <= {use.kernel.alias for use in used}
    assert {step.slot for step in kind.layer} == set(kind.slots)
    if "base" not in (SEQUENCES / f"{name}.toml").read_text().split("[")[0]:
        assert set(kind.kernels) == {use.kernel.alias for use in used}
    assert all(kernel.us > 0 for kernel in kind.kernels.values())


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(KeyError, match="no kind 'qwen'; there are .*hf_qwen2_amd"):
        made_traces.kind("qwen")
    with pytest.raises(ValueError, match="no num_hidden_layers"):
        make({"model_type": "x"}, "hf_qwen2_amd")
    with pytest.raises(ValueError, match="layer_types has 1 entries for 2 layers"):
        make({"num_hidden_layers": 2, "layer_types": ["x"]}, "hf_qwen2_amd")
    with pytest.raises(ValueError, match="rank is below world_size"):
        small("hf_qwen2_amd", Scenario(rank=1))
