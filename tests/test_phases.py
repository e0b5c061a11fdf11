"""Kind, phase and load of passes: what names tell, and which pass they are told of.

The names are those that vLLM, SGLang, ATOM, TensorRT-LLM and vllm-rlt write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from conftest import Analyse

from fixtures import Pass, Scenario, kind, make, speculating, write
from trace_sql.analysis import create_table
from trace_sql.base_tables import BASE_TABLES
from trace_sql.views import load_views

TIMED = ("event_pairs", "timed_events")
"""Views between events and annotations."""

TOLD = (
    "kind",
    "pass_kind",
    "phase",
    "batch_size",
    "n_tokens",
    "n_context_requests",
    "n_context_tokens",
    "n_prior_tokens",
    "n_generation_requests",
    "n_generation_tokens",
)
STEP, STAGE, NO = "step", "stage", None
NAMES: dict[str, tuple[Any, ...]] = {
    # vLLM, short and detailed.
    "execute_context_2(64)_generation_0(0)": (STEP, NO, "prefill", 2, 64, 2, 64, NO, 0, 0),
    "execute_context_0(0)_generation_3(3)": (STEP, NO, "decode", 3, 3, 0, 0, NO, 3, 3),
    "execute_context_1(60)_generation_3(3)": (STEP, NO, "mixed", 4, 63, 1, 60, NO, 3, 3),
    "execute_context_0(0)_generation_8(32)": (STEP, NO, "verify", 8, 32, 0, 0, NO, 8, 32),
    "execute_context_1(60)_generation_8(32)": (STEP, NO, "mixed", 9, 92, 1, 60, NO, 8, 32),
    "execute_context_0(0)_generation_0(0)": (STEP, NO, NO, 0, 0, 0, 0, NO, 0, 0),
    "execute_context_1(888_788544)_generation_0(0)": (
        *(STEP, NO, "prefill", 1, 888, 1, 888, NO, 0, 0),
    ),
    "execute_64_context_2(sq64sk164sqsq2048sqsk5248)_generation_0(sq0sk0sqsq0sqsk0)": (
        *(STEP, NO, "prefill", 2, 64, 2, 64, 100, 0, 0),
    ),
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_8(sq32sk900sqsq128sqsk3600)": (
        *(STEP, NO, "verify", 8, 32, 0, 0, NO, 8, 32),
    ),
    "execute_new_1_cached_3": (STEP, *[NO] * 9),
    "gpu_model_runner: draft": (STAGE, "draft", "draft", *[NO] * 7),
    # SGLang, short and detailed; the modes of earlier versions.
    "step[EXTEND bs=2 toks=64]": (STEP, NO, "prefill", 2, 64, 2, 64, NO, 0, 0),
    "step[EXTEND bs=2 toks=64 c_sq=64 c_sqsq=2048 c_sqsk=5248 c_sk=164 forward_id=7]": (
        *(STEP, NO, "prefill", 2, 64, 2, 64, 100, 0, 0),
    ),
    "step[DECODE bs=32]": (STEP, NO, "decode", 32, 32, 0, 0, NO, 32, 32),
    "step[DECODE bs=8 g_sq=8 g_sqsq=8 g_sqsk=900 g_sk=900]": (
        *(STEP, NO, "decode", 8, 8, 0, 0, NO, 8, 8),
    ),
    "step[DECODE bs=8 g_sq=32 g_sqsq=128 g_sqsk=900 g_sk=900]": (
        *(STEP, "draft", "draft", 8, 32, 0, 0, NO, 8, 32),
    ),
    "step[MIXED bs=5]": (STEP, NO, "mixed", 5, *[NO] * 6),
    "step[MIXED bs=5 c=2 g=3 c_sq=60 c_sk=80 c_sqsq=1 c_sqsk=1 g_sq=3 g_sk=9 g_sqsq=3 g_sqsk=9]": (
        *(STEP, NO, "mixed", 5, 63, 2, 60, 20, 3, 3),
    ),
    "step[VERIFY bs=8]": (STEP, "target", "verify", 8, NO, 0, 0, NO, 8, NO),
    "step[VERIFY bs=8 g_sq=32 g_sqsq=128 g_sqsk=900 g_sk=900]": (
        *(STEP, "target", "verify", 8, 32, 0, 0, NO, 8, 32),
    ),
    "step[TARGET_VERIFY bs=8]": (STEP, NO, "verify", 8, NO, 0, 0, NO, 8, NO),
    "step[DRAFT bs=8]": (STEP, "draft", "draft", 8, *[NO] * 6),
    "step[DRAFT bs=8 toks=32]": (STEP, "draft", "draft_extend", 8, 32, *[NO] * 5),
    "step[DRAFT_EXTEND_V2 bs=8]": (STEP, "draft", "draft_extend", 8, *[NO] * 6),
    "step[DRAFT_LOOP raw_bs=7 bs=8 topk=1]": (STEP, "mtp", "draft", 7, *[NO] * 6),
    "step[SPLIT_PREFILL bs=1]": (STEP, NO, "prefill", 1, NO, 1, NO, NO, 0, 0),
    "step[IDLE bs=0]": (STEP, NO, "idle", 0, *[NO] * 6),
    "draft": (STAGE, "draft", "draft", *[NO] * 7),
    "draft_extend": (STAGE, "draft", "draft_extend", *[NO] * 7),
    "verify": (STAGE, "target", "verify", NO, NO, 0, 0, *[NO] * 3),
    # ATOM: padding behind the slash is not counted.
    "prefill[bs=2 tok=64 ctx=[40, 24]]": (STEP, NO, "prefill", 2, 64, 2, 64, NO, 0, 0),
    "prefill[bs=2 tok=64 ctx=[80, 84] sqsq=2048 sqsk=5248 sk=164 tbo=1]": (
        *(STEP, NO, "prefill", 2, 64, 2, 64, 100, 0, 0),
    ),
    "decode[bs=117/128 tok=117 d=117]": (STEP, NO, "decode", 117, 117, 0, 0, NO, 117, 117),
    "decode[bs=8 tok=32 d=8 spec=3]": (STEP, NO, "verify", 8, 32, 0, 0, NO, 8, 32),
    "decode[bs=9 tok=69 p=1 d=8]": (STEP, NO, "mixed", 9, 69, 1, NO, NO, 8, NO),
    "eager_decode[bs=3 tok=3 ctx=[7, 8, 9]]": (STEP, NO, "decode", 3, 3, 0, 0, NO, 3, 3),
    "dummy_decode[bs=4]": (STEP, NO, "dummy", 4, *[NO] * 6),
    "draft[0/3 bs=8]": (STEP, "draft", "draft", 8, *[NO] * 6),
    # TensorRT-LLM does not count the tokens of requests that generate.
    "[Executor] _forward_step 7: 2 ctx reqs, 64 ctx tokens, 0 gen reqs": (
        *(STEP, NO, "prefill", 2, 64, 2, 64, NO, 0, 0),
    ),
    "[Executor] _forward_step 8: 0 ctx reqs, 32 gen reqs": (
        *(STEP, NO, "decode", 32, NO, 0, 0, NO, 32, NO),
    ),
    "[Executor] _forward_step: 1 ctx reqs, 3 gen reqs": (
        *(STEP, NO, "mixed", 4, NO, 1, NO, NO, 3, NO),
    ),
    # vllm-rlt, whose model drafts for itself with fewer loops.
    "spec.draft.core.d1": (STAGE, "draft", "draft", *[NO] * 7),
    "spec.verify.core.d3": (STAGE, "target", "verify", NO, NO, 0, 0, *[NO] * 3),
    # What tells nothing of a step.
    "ProfilerStep#6": ("profiler_step", *[NO] * 9),
    "## Call CompiledFxGraph toy ##": ("compiled_graph", *[NO] * 9),
    "nccl:all_reduce": ("other", *[NO] * 9),
    "spec.round": ("other", *[NO] * 9),
    "drafting": ("other", *[NO] * 9),
    "capture_32_DECODE": ("other", *[NO] * 9),
    "step[": ("other", *[NO] * 9),
    "step[DECODE bs=99999999999999999999]": (STEP, NO, NO, NO, NO, 0, 0, NO, NO, NO),
}


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, dict[str, Any]]]:
    """What the view of annotations says of each of NAMES."""
    with contextlib.closing(duckdb.connect()) as connection:
        create_table(connection, "raw_events", BASE_TABLES["raw_events"], [])
        values = [[name, number] for number, name in enumerate(NAMES)]
        connection.executemany(
            "insert into raw_events (trace_id, ph, cat, name, ts_ns, dur_ns, event_id)"
            " values ('t', 'X', 'user_annotation', ?, 10, 5, ?)",
            values,
        )
        for name in ("events", *TIMED, "step_fields", "step_names", "annotations"):
            connection.execute(f"create view {name} as {load_views()[name].text}")
        cursor = connection.execute(f"select name, {', '.join(TOLD)} from annotations")
        yield {row[0]: dict(zip(TOLD, row[1:], strict=True)) for row in cursor.fetchall()}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_what_it_says_and_no_more(told: dict[str, dict[str, Any]], name: str) -> None:
    assert told[name] == dict(zip(TOLD, NAMES[name], strict=True))


# Of which pass it is told.

TABLES = {
    "placed_activities": "trace_id varchar, pass_no bigint, event_id bigint, name varchar,"
    " category varchar, region varchar",
    "launches": "trace_id varchar, event_id bigint, launch_event_id bigint, pid varchar,"
    " tid varchar, launch_ns bigint",
    "pass_windows": "trace_id varchar, pass_no bigint, status varchar, n_layers bigint",
    "verdicts": "trace_id varchar, n_layers bigint, n_layers_source varchar",
    "raw_facts": "trace_id varchar, name varchar",
    "name_classes": "trace_id varchar, name varchar, category varchar",
}


class Told:
    """Passes and annotations by hand, and what the views make of them."""

    def __init__(self, layers: int, source: str = "anchors", file: str = "some") -> None:
        self.connection = duckdb.connect()
        create_table(self.connection, "raw_events", BASE_TABLES["raw_events"], [])
        for name, columns in TABLES.items():
            self.connection.execute(f"create table {name} ({columns})")
        self.connection.execute("insert into verdicts values ('t', ?, ?)", [layers, source])
        self.connection.execute("insert into raw_facts values ('t', ?)", [file])
        self.count = 0

    def note(self, name: str, start: int, end: int, tid: str = "1") -> None:
        self.count += 1
        self.connection.execute(
            "insert into raw_events (trace_id, ph, cat, name, pid, tid, ts_ns, dur_ns, event_id)"
            " values ('t', 'X', 'user_annotation', ?, '9', ?, ?, ?, ?)",
            [name, tid, start, end - start, self.count],
        )

    def run(
        self,
        layers: int,
        launched: int | None,
        layer: str = "attn",
        end: str = "argmax",
        status: str = "complete",
    ) -> None:
        """Add a pass whose kernels are launched at one time, as from a graph."""
        number = self.connection.execute("select count(*) from pass_windows").fetchall()[0][0]
        self.connection.execute(
            "insert into pass_windows values ('t', ?, ?, ?)", [number, status, layers]
        )
        for name, category, region in (
            (layer, "attention", "layer"),
            (end, "sampling", "epilogue"),
        ):
            self.count += 1
            self.connection.execute(
                "insert into placed_activities values ('t', ?, ?, ?, ?, ?)",
                [number, self.count, name, category, region],
            )
            self.connection.execute("insert into name_classes values ('t', ?, ?)", [name, category])
            if launched is not None:
                self.connection.execute(
                    "insert into launches values ('t', ?, ?, '9', '1', ?)",
                    [self.count, 10_000 + launched, launched],
                )

    def phases(self, *columns: str) -> list[tuple[Any, ...]]:
        self.connection.execute(
            "create table classes as select distinct * from name_classes;"
            "drop table name_classes; alter table classes rename to name_classes"
        )
        views = ("events", *TIMED, "step_fields", "step_names", "annotations", "pass_annotations")
        for name in (*views, "pass_kinds", "pass_words", "pass_phases"):
            self.connection.execute(f"create view {name} as {load_views()[name].text}")
        chosen = ", ".join(columns or ("kind", "kind_source", "phase", "phase_source"))
        return self.connection.execute(
            f"select {chosen} from pass_phases order by pass_no"
        ).fetchall()


def test_annotations_are_tied_by_launch_and_not_by_time() -> None:
    trace = Told(4)
    trace.note("step[EXTEND bs=1 toks=7]", 0, 100)
    trace.note("step[DECODE bs=3]", 100, 200)
    trace.note("step[DECODE bs=9]", 0, 300, tid="2")
    trace.run(4, launched=50)
    trace.run(4, launched=100)
    trace.run(4, launched=250)
    trace.run(4, launched=None)
    assert trace.phases("phase", "phase_source", "n_tokens") == [
        ("prefill", "annotation", 7),
        ("decode", "annotation", 3),
        (None, None, None),
        (None, None, None),
    ]


def test_verification_and_drafts_of_one_graph() -> None:
    trace = Told(3)
    trace.note("step[DECODE bs=1]", 0, 60)
    trace.run(3, launched=10, end="accept_tokens")
    trace.run(1, launched=10)
    trace.run(1, launched=10)
    assert trace.phases() == [
        ("target", "layer count", "verify", "kernels"),
        ("draft", "layer count", "draft", "layer count"),
        ("draft", "layer count", "draft", "layer count"),
    ]


def test_a_range_that_means_the_target_does_not_mean_a_draft_beside_it() -> None:
    trace = Told(3, "config")
    trace.note("step[VERIFY bs=8]", 0, 60)
    trace.run(3, launched=10)
    trace.run(1, launched=20)
    trace.note("step[VERIFY bs=8]", 100, 160)
    trace.run(1, launched=110)
    assert trace.phases("kind", "kind_source", "phase", "batch_size") == [
        ("target", "annotation", "verify", 8),
        ("draft", "layer count", "draft", None),
        ("target", "annotation", "verify", 8),
    ]


def test_a_draft_as_deep_as_the_target_is_told_by_its_annotation() -> None:
    trace = Told(3, "config")
    trace.note("draft_extend", 0, 100)
    trace.note("step[DRAFT bs=8]", 10, 50)
    trace.run(3, launched=20)
    trace.run(3, launched=70)
    trace.note("step[DRAFT_LOOP raw_bs=7 bs=8 topk=1]", 110, 150)
    trace.run(1, launched=120)
    trace.run(1, launched=120)
    assert trace.phases("kind", "kind_source", "phase", "label", "batch_size") == [
        ("draft", "annotation", "draft_extend", "draft_extend", 8),
        ("draft", "annotation", "draft_extend", "draft_extend", None),
        ("mtp", "annotation", "draft", "mtp draft", 7),
        ("mtp", "annotation", "draft", "mtp draft", 7),
    ]


def test_a_step_of_two_microbatches_tells_the_load_of_neither() -> None:
    trace = Told(3)
    trace.note("execute_context_0(0)_generation_8(8)", 0, 60)
    trace.run(3, launched=10)
    trace.run(3, launched=12)
    assert trace.phases("phase", "batch_size", "n_tokens") == [("decode", None, None)] * 2


@pytest.mark.parametrize(
    ("file", "layer", "drafts", "expected"),
    [
        ("x-TP-0-DECODE", "prefill_attn", 0, ("decode", "file name")),
        ("x-TP-0-EXTEND", "attn", 0, ("prefill", "file name")),
        ("x", "prefill_attn", 0, ("prefill", "kernels")),
        ("x", "decode_attn", 0, ("decode", "kernels")),
        ("x", "attn", 0, (None, None)),
        # Verification runs attention for prefill, so where there are drafts it says nothing.
        ("x", "prefill_attn", 1, (None, None)),
    ],
)
def test_without_annotations_the_file_and_kernels_speak(
    file: str, layer: str, drafts: int, expected: tuple[str | None, str | None]
) -> None:
    trace = Told(3, file=file)
    trace.run(3, launched=10, layer=layer)
    for _ in range(drafts):
        trace.run(1, launched=20)
    found = trace.phases("kind", "phase", "phase_source")
    assert found[0] == ("target", *expected)
    assert found[1:] == [("draft", "draft", "layer count")] * drafts


def test_a_kind_without_any_evidence_has_no_source_and_a_refused_pass_no_kind() -> None:
    trace = Told(3)
    trace.run(3, launched=None)
    trace.run(1, launched=None, status="refused")
    assert trace.phases("kind", "kind_source") == [("target", None), (None, None)]


# Made traces.


@pytest.mark.parametrize("launch", ["eager", "graph"])
@pytest.mark.parametrize("name", ["dsv3_mla_sglang_nvidia_nextn"])
def test_rounds_of_speculation(analyse: Analyse, tmp_path: Path, name: str, launch: Any) -> None:
    model = kind(name)
    config = model.model_config(6)
    made = make(config, model, Scenario(passes=speculating(rounds=3), launch=launch))
    trace = analyse(write(made, tmp_path / "rounds.json.gz"), config=config)
    seen = trace.rows(
        "select p.status, k.* from passes as p join pass_phases as k using (trace_id, pass_no)"
        " order by p.pass_no"
    )
    # SGLang names the draft's pass over what was verified, unless a graph replays it.
    extends = {one.pass_no for one in made.truth.passes if one.kind == "draft" and one.tokens > 8}
    assert [(row["status"], row["kind"], row["phase"]) for row in seen] == [
        (
            "complete",
            one.kind,
            "draft_extend" if one.pass_no in extends and launch == "eager" else one.phase,
        )
        for one in made.truth.passes
    ]
    assert {row["kind_source"] for row in seen} <= {"annotation", "layer count"}
    for row, one in zip(seen, made.truth.passes, strict=True):
        assert row["batch_size"] in (one.requests, None)
        assert row["n_tokens"] in (one.tokens, None)
        assert row["batch_size"] is not None or one.kind == "draft"
    kinds = {(row["kind"], row["phase"]) for row in trace.rows("from pass_changes")}
    assert kinds - {("draft", "draft_extend")} == {
        ("target", "prefill"),
        ("target", "verify"),
        ("draft", "draft"),
    }


def test_vllm_tells_verification_by_its_tokens(analyse: Analyse, tmp_path: Path) -> None:
    model = kind("vllm_gptoss_nvidia")
    config = model.model_config(4)
    plan = (
        Pass("prefill", 2, 64),
        Pass("mixed", 4, 63),
        Pass("decode", 8),
        Pass("verify", 8),
        Pass("verify", 8, 24),
    )
    made = make(config, model, Scenario(passes=plan, overlap=True))
    trace = analyse(write(made, tmp_path / "verify.json.gz"), config=config)
    seen = trace.rows("from pass_phases order by pass_no")
    assert [(row["phase"], row["batch_size"], row["n_tokens"]) for row in seen] == [
        (one.phase, one.requests, one.tokens) for one in made.truth.passes
    ]
    assert {row["phase_source"] for row in seen} == {"annotation"}
    assert [row["n_generation_tokens"] for row in seen] == [0, 3, 8, 32, 24]


def test_a_nested_marker_tells_what_the_outer_one_does_not(analyse: Analyse, shared: Any) -> None:
    path = shared("cases/27_nested_step_markers.json")
    trace = analyse(path, anchor_kernel="toy_norm", blocks_per_layer=1, num_layers=2)
    seen = trace.rows("from pass_phases order by pass_no")
    first = {key: seen[0][key] for key in ("kind", "phase", "batch_size", "n_tokens", "step_name")}
    assert first == {
        "kind": "target",
        "phase": "prefill",
        "batch_size": 2,
        "n_tokens": 64,
        "step_name": "step[EXTEND bs=2 toks=64]",
    }


def test_annotations_on_the_device_are_never_work(analyse: Analyse, shared: Any) -> None:
    trace = analyse(shared("cases/20_gpu_annotation_double_count.json"))
    work = trace.rows("select sum(dur_ns) as ns, count(*) as n from activities")
    assert work == [{"ns": 60_000, "n": 2}]
    sides = trace.rows("select distinct side from annotations")
    assert sides == [{"side": "device"}]
