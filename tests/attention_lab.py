"""Answers about attention in a trace and in changed copies of it, and how to compare them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import trace_edits as edits
from host_made import FLASH, FLASH_BACKWARD, Host, Kernel

from trace_sql.database import Database
from trace_sql.store import Settings, Store

Row = dict[str, Any]
Rows = list[Row]
Answer = dict[str, Rows]

GEMM, SOFTMAX = "ampere_bf16_gemm", "softmax_warp_forward<float>"
STEPS = (
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
    "execute_40_context_2(sq70sk90sqsq2500sqsk3300)_generation_3(sq3sk300sqsq3sqsk300)",
)
BASES = {
    "bert": ("traces/hf_bert_small_h100.json.gz", None),
    "decode": (
        "traces/vllm_gpt_oss_20b_decode_mi300x.json.gz",
        "facts/models/configs/gpt-oss-20b.json",
    ),
    "made": (None, None),
}


def made_trace(path: Path) -> Path:
    """Write a trace with attention of every kind: fused or not, backward, grouped, over a cache."""
    host = Host()
    o, aten = host.operator, "aten::_scaled_dot_product_"

    def project() -> Any:
        return o("aten::mm", Kernel(GEMM, 40), dims=[[512, 512], [512, 512]])

    def fused(name: str, dims: list[Any], us: float, scalars: Mapping[int, str] = {}) -> None:
        kernel = FLASH_BACKWARD if "backward" in name else FLASH
        host.run(project(), o(name, Kernel(kernel, us), dims=dims, scalars=scalars), project())

    for more in (0, 1, 2):
        fused(aten + "flash_attention", [[2, 8, 512, 64]] * 3, 40 + more, {4: "True"})
        fused("flash_attn::_flash_attn_forward", [[2, 512, 8, 64], *[[2, 512, 2, 64]] * 2], 60)
        bias = [*[[2, 8, 300, 64]] * 3, [2, 8, 300, 300]]
        fused(aten + "efficient_attention", bias, 90 + more, {6: "False"})
        fused(aten + "flash_attention_backward", [[2, 8, 512, 64]] * 5, 150, {11: "True"})
        heads, scores = [[12, 256, 64], [12, 64, 256]], [12, 256, 256]
        host.run(
            o("aten::bmm", Kernel("gemm_qk", 30), dims=heads),
            o("aten::_softmax", Kernel(SOFTMAX, 25 + more), dims=[scores], scalars={1: "-1"}),
            o("aten::bmm", Kernel("gemm_pv", 30), dims=[scores, [12, 256, 64]]),
            project(),
        )
    for name, tokens in zip(STEPS, (32, 73), strict=True):
        wide, narrow = [tokens, 64, 64], [tokens, 8, 64]
        write = o("_C_cache_ops::reshape_and_cache_flash", Kernel("reshape_and_cache_flash", 4))
        call = o(
            "vllm::unified_attention_with_output",
            *(write, Kernel("kernel_unified_attention_3d", 70), Kernel("reduce_segments", 5)),
            dims=[wide, narrow, narrow, wide],
        )
        host.step(name, *[project(), call] * 4)
    gpu = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85 * 10**9}
    return host.write(path, deviceProperties=[gpu])


VIEWS = {
    "ops": ("from attention_ops", ("operation", "layer_class", "phase", "input_dims")),
    "calls": (
        "select * from attention_calls join attention_work using (trace_id, call_no)"
        " join attention_rooflines using (trace_id, call_no)",
        ("call_no",),
    ),
    "shares": ("from attention_shares", ("scope", "of")),
    "coverage": ("from attention_coverage", ()),
    "findings": ("from attention_findings", ("rank",)),
    "members": (
        "select m.*, o.operation, o.phase from finding_members as m"
        " join attention_ops as o using (trace_id, op_no)",
        ("rank", "operation", "phase"),
    ),
}
"""What is asked, and by which columns rows of two answers belong together."""

LATER = "1700000000000000.5"
"""By so many microseconds: counted since 1970."""
PLACES = {"trace_id", "op_no", "op_nos", "call_no", "lead_call_no", "operator_event_id"}
PLACES |= {"lead_event_id", "host_trace_id", "start_ns", "end_ns", "position"}
"""Columns that say which one or when, and nothing of attention."""

LENGTHS = [
    *("sum_us", "mean_us", "std_us", "min_us", "max_us", "core_us", "overhead_us", "busy_us"),
    *("sum_dur_us", "busy_ns", "core_ns", "sum_dur_ns", "launch_us", "attention_ms", "busy_ms"),
    "wall_ms",
]
RATES = [
    *("tflops", "tb_s", "efficiency_pct", "mean_efficiency_pct", "core_efficiency_pct"),
    "measured_efficiency_pct",
]
FLOORS = {"floor_us", "floor_kind", "floor_efficiency_pct", "in_band"}
SUMS = [
    *("n_calls", "n_passes", "n_parts", "n_rated", "n_without", "sum_us", "core_us", "overhead_us"),
    *("sum_dur_us", "attention_ms", "busy_ms", "roofline_us", "tile_us", "floor_us", "flops"),
    *("bytes", "bytes_pages", "score_bytes", "ctx_flops", "gen_flops", "ctx_bytes", "gen_bytes"),
]


class Lab:
    """Answers about traces, each asked for once, and about changed copies of them."""

    def __init__(self, store: Store, folder: Path, shared: Callable[[str], Path]) -> None:
        self.store, self.folder, self.shared = store, folder, shared
        self.known: dict[str, Answer] = {}

    def path(self, base: str) -> Path:
        name = BASES[base][0]
        return made_trace(self.folder / "made.json") if name is None else self.shared(name)

    def base(self, base: str) -> Answer:
        if base not in self.known:
            self.known[base] = self.answer(base, self.path(base))
        return self.known[base]

    def edited(self, base: str, edit: edits.Edit, **settings: Any) -> Answer:
        return self.answer(base, self.copy(base, edit), **settings)

    def copy(self, base: str, edit: edits.Edit) -> Path:
        return edits.save(edit(edits.read(self.path(base))), self.folder / "edited.json")

    def answer(self, base: str, path: Path, **settings: Any) -> Answer:
        name = BASES[base][1]
        config = json.loads(self.shared(name).read_text(encoding="utf-8")) if name else None
        trace_id = self.store.ingest(path).trace_id
        traces = {trace_id: Settings(config=config, **settings)}
        with Database(self.store, traces) as db:
            return {name: db.query(sql).dicts() for name, (sql, _) in VIEWS.items()}


def same(view: str, one: Rows, other: Rows, but: Iterable[str] = ()) -> None:
    """Rows are the same in everything but their places and the columns `but`."""
    keys = VIEWS[view][1]
    left, right = (sorted(rows, key=lambda row: [str(row[key]) for key in keys])
                   for rows in (one, other))  # fmt: skip
    assert len(left) == len(right)
    unlike = [
        (key, row[key], pair[key])
        for row, pair in zip(left, right, strict=True)
        for key in row.keys() - PLACES - {*but}
        if not alike(row[key], pair[key])
    ]
    assert unlike == [], view


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def unchanged(lab: Lab, base: str, answer: Answer, but: Iterable[str] = ()) -> None:
    for view, rows in answer.items():
        same(view, rows, lab.base(base)[view], but)


def scaled(rows: Rows, columns: Iterable[str], factor: float) -> Rows:
    """Return rows with columns multiplied, where there is a number."""
    return [
        row | {key: row[key] * factor for key in columns if row.get(key) is not None}
        for row in rows
    ]
