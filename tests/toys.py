"""Traces of small models with made-up kernels, made by hand, and the judgement of their splits.

Where the maker of `fixtures` writes what engines do, these say only what runs in which pass, in
which launch and inside which markers; anything of it may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from splits import Split, split_all

from trace_sql.store import Settings


@dataclass(frozen=True)
class Plan:
    """One forward pass: what runs in it, and how the host names the step around it."""

    layers: int = 2
    attn: str = "toy_attn"
    ffn: str = "toy_mlp_gemm"
    embed: str | None = None
    final: str | None = None
    head: tuple[str, ...] = ("toy_lm_head_gemm",)
    kind: str = "target"
    step: tuple[str, ...] = ("step[DECODE bs=2]", "execute_context_0(0)_generation_2(2)")
    """Names from the outermost; none: the pass runs in the step of the pass before."""
    late_head: bool = False
    """Its head is launched behind the markers."""


@dataclass(frozen=True)
class Toy:
    """A trace to make by hand; a `Case` for `split_all`."""

    plans: tuple[Plan, ...]
    graph: bool = False
    """Each step is one graph launch, and so is a head behind it."""
    marked: bool = True
    compiled: bool = False
    noise: int = 0
    """Kernels a pass on another stream, in the same graph or launched between."""
    told: int | None = None
    cut_start: int = 0
    cut_end: int = 0
    renamed: dict[int, str] = field(default_factory=dict)
    """Kernels by number that get another name, as where a boundary is missing."""

    def settings(self) -> Settings:
        return Settings(num_layers=self.told)


@dataclass
class Writer:
    """Events in order, times in ns, and what each kernel is."""

    toy: Toy
    events: list[dict[str, Any]] = field(default_factory=list)
    truth: dict[int, tuple[int, int | None, str]] = field(default_factory=dict)
    host_ns: int = 1_000
    device_ns: int = 60_000
    graph: int | None = None
    n_launches: int = 0

    def host(self, cat: str, name: str, start: int, end: int, **args: Any) -> dict[str, Any]:
        event = {"ph": "X", "cat": cat, "name": name, "pid": 42, "tid": 42}
        event |= {"ts": start, "dur": end - start, "args": args}
        self.events.append(event)
        return event

    def launch(self, name: str) -> int:
        self.n_launches += 1
        self.host_ns += 2_000
        start = self.host_ns - 1_000
        self.host("cuda_runtime", name, start, start + 500, correlation=self.n_launches)
        return self.n_launches

    def kernel(
        self, name: str, place: tuple[int, int | None, str] | None, us: int = 10, stream: int = 7
    ) -> None:
        if self.toy.graph and self.graph is None:
            self.graph = self.launch("cudaGraphLaunch")
        call = self.graph or self.launch("cudaLaunchKernel")
        start = self.device_ns = max(self.device_ns, self.host_ns + 3_000) + 500
        if stream == 7:
            self.device_ns += us * 1_000
        args = {"device": 0, "stream": stream, "correlation": call}
        event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream}
        self.events.append({**event, "ts": start, "dur": us * 1_000, "args": args})
        if place is not None:
            self.truth[len(self.events) - 1] = place

    def marked(self, names: Sequence[str], start: int) -> None:
        for depth, name in enumerate(names if self.toy.marked else ()):
            self.host("user_annotation", name, start + 10 * depth, self.host_ns + 900 - 10 * depth)


def written(toy: Toy) -> Writer:
    out = Writer(toy)
    heads: list[tuple[int, Plan]] = []
    step: tuple[str, ...] = ()
    begun = 0

    def close() -> None:
        out.marked(step, begun)
        out.graph = None
        out.host_ns += 2_000
        for number, plan in heads:
            for name in plan.head:
                out.kernel(name, (number, None, "epilogue"), 80)
        heads.clear()
        out.graph = None

    for number, plan in enumerate(toy.plans):
        if plan.step:
            close()
            step, begun = plan.step, out.host_ns + 500
        if plan.embed:
            out.kernel(plan.embed, (number, None, "prologue"))
        for layer in range(plan.layers):
            start = out.host_ns + 600
            for name in ("toy_norm", plan.attn, plan.ffn):
                out.kernel(name, (number, layer, "layer"))
                if name == plan.attn and layer == 0:
                    for _ in range(toy.noise):
                        out.kernel("toy_noise", None, 3, stream=13)
            if toy.compiled:
                out.host(
                    "user_annotation", f"## Call CompiledFxGraph h{layer} ##", start, out.host_ns
                )
        if plan.final:
            out.kernel(plan.final, (number, None, "epilogue"))
        if plan.late_head:
            heads.append((number, plan))
        else:
            for name in plan.head:
                out.kernel(name, (number, None, "epilogue"))
    close()
    cut(out, toy)
    return out


def cut(out: Writer, toy: Toy) -> None:
    """Rename kernels, and lose some at either end, with what the host did before or behind."""
    kernels = [n for n, event in enumerate(out.events) if event["cat"] == "kernel"]
    for number, name in toy.renamed.items():
        out.events[kernels[number % len(kernels)]]["name"] = name
    lost = set(kernels[: toy.cut_start] + (kernels[-toy.cut_end :] if toy.cut_end else []))
    gone = {out.events[n]["args"]["correlation"] for n in kernels[: toy.cut_start]}
    left = {out.events[n]["args"]["correlation"] for n in kernels if n not in lost} - gone
    calls = [
        event["ts"]
        for event in out.events
        if event["cat"] == "cuda_runtime" and event["args"]["correlation"] in left
    ] or [out.host_ns]
    for number, event in enumerate(out.events):
        if event["cat"] == "cuda_runtime" and not min(calls) <= event["ts"] <= max(calls):
            lost.add(number)
        if event["cat"] == "user_annotation" and (
            (toy.cut_start and event["ts"] < min(calls))
            or (toy.cut_end and event["ts"] + event["dur"] > max(calls) + 400)
        ):
            lost.add(number)
    kept = [number for number in range(len(out.events)) if number not in lost]
    out.events = [out.events[number] for number in kept]
    out.truth = {
        new: out.truth[old] for new, old in enumerate(kept) if old in out.truth and old not in lost
    }


def splits(toys: Sequence[Toy]) -> list[tuple[Writer, Split]]:
    made = [written(toy) for toy in toys]
    cases: Any = toys
    mades: Any = made
    found = split_all(cases, mades)
    return list(zip(made, found, strict=True))


def stepped(out: Writer) -> set[int]:
    """Return the kernels whose launch lies in a step marker that is left."""
    steps = [
        (event["ts"], event["ts"] + event["dur"])
        for event in out.events
        if event["name"].startswith(("step[", "execute_"))
    ]
    calls = {
        event["args"]["correlation"]: event["ts"]
        for event in out.events
        if event["cat"] == "cuda_runtime"
    }
    return {
        number
        for number, event in enumerate(out.events)
        if event["cat"] == "kernel"
        and any(a <= calls.get(event["args"]["correlation"], -1) < b for a, b in steps)
    }


def wrong(out: Writer, split: Split, *, exact: bool = False) -> list[str]:
    """List what is wrong; with `exact` also what is not known."""
    if split.verdict["verdict"] != "split":
        return [str(split.verdict["message"])] if exact else []
    told = stepped(out)
    # A pass that is refused may be two, or none: the others are known by their layers.
    true_of: dict[int, int] = {}
    for event, (true, _, region) in out.truth.items():
        if region == "layer" and split.places[event][4] == "layer":
            true_of.setdefault(split.places[event][0], true)
    bad = [] if len(set(true_of.values())) == len(true_of) else [f"two of one: {true_of}"]
    for event, (true, layer, region) in out.truth.items():
        pass_no, _, found_layer, _, found = split.places[event]
        right = (true_of.get(pass_no), found_layer, found) == (true, layer, region)
        if not exact and not right:
            # Without a step around its launch nothing tells what else belongs to a pass.
            right = found is None or ("layer" not in (region, found) and event not in told)
        name = out.events[event]["name"]
        # An embedding of another name is known from its graph launch only.
        right |= name.startswith("k_") and region == "prologue" and found != "layer"
        if not right:
            bad.append(f"{name} of {(true, layer, region)}: {(pass_no, found_layer, found)}")
    for event, place in split.places.items():
        if event not in out.truth and place[4] == "layer" and not out.toy.noise:
            bad.append(f"{out.events[event]['name']} is {place}")
    for row in split.passes:
        if row["status"] == "refused":
            bad += [f"refused: {row['evidence']}"] if exact else []
            continue
        plan = out.toy.plans[true_of[row["pass_no"]]]
        known = plan.kind if exact or row["kind_source"] else row["kind"]
        if (row["n_layers"], row["kind"]) != (plan.layers, known):
            bad.append(f"{row['status']} {row['n_layers']} {row['kind']}: {plan}")
    if exact and len(split.passes) != len(out.toy.plans):
        bad.append(f"{len(split.passes)} passes")
    return bad
