"""Copies that a wrapper makes around calls of attention, by the view and by plain reading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import trace_edits as edits
from attention_ops_made import Row, made_ops
from conftest import Analyse, Shared
from view_tables import rows_of

ELEMENTS = 1024 * 8 * 64


def wrapped(line: str, sizes: Sequence[int] = ()) -> list[Row]:
    """Return what `attention_wrappers` says of a line of copies (c), calls (A) and others (x).

    Copies have the size of a tensor of the calls, or in their order one of `sizes`.
    """
    elements = dict(zip((n for n, one in enumerate(line) if one == "c"), sizes, strict=False))
    activities: list[Row] = [
        {"trace_id": "t", "event_id": number, "gpu_index": number, "pid": "0", "device": 0}
        | {"stream": 7, "start_ns": 1000 * number, "end_ns": 1000 * number + 1000}
        | {"dur_ns": 1000, "selected": True, "kind": "kernel", "name": name}
        for number, name in enumerate(line)
    ]
    operators = [
        {"trace_id": "t", "event_id": number, "operator": "aten::copy_"}
        | {"input_dims": f"[[{elements.get(number, ELEMENTS)}],[]]"}
        for number, name in enumerate(line)
        if name == "c"
    ]
    found = [row for row in activities if row["name"] == "A"]
    with made_ops(
        [{}] * len(found),
        ("attention_wrappers",),
        activities=activities,
        attention_activities=[
            {**row, "call_no": number, "role": "core"} for number, row in enumerate(found)
        ],
        activity_operators=operators,
    ) as connection:
        return rows_of(connection, "from attention_wrappers")


@pytest.mark.parametrize(
    ("line", "before", "behind", "us"),
    [
        ("cccAc", 3, 1, 4),
        # More copies than tensors are not all a wrapper's.
        ("cccccAcc", 3, 1, 4),
        ("xccxcAxc", 1, 0, 1),
        ("cccAccccAc", 3, 1, 8),
        # One between two calls is the output of the first, not an input of the second too.
        ("cccAcAc", 1.5, 1, 5),
        # Those of another layer stand behind what is between.
        ("cccAcxcccxAx", 1.5, 0.5, 4),
    ],
)
def test_copies_right_before_and_behind_a_call_are_a_wrapper_s(
    line: str, before: float, behind: float, us: float
) -> None:
    (row,) = wrapped(line)
    assert (row["n_before"] or 0, row["n_behind"] or 0, row["sum_us"]) == (before, behind, us)


def test_copies_of_other_sizes_are_no_wrapper_s() -> None:
    assert wrapped("cccAc", [999] * 4) == []
    (row,) = wrapped("cccAc", [ELEMENTS, 999, ELEMENTS, 999])
    assert (row["n_before"], row["n_behind"], row["sum_us"]) == (1, 0, 1)


def test_a_real_model_that_copies_around_each_call(
    shared: Shared, analyse: Analyse, tmp_path: Path
) -> None:
    path = shared("traces/hf_qwen1_5_0_5b_h100.json.gz")
    trace = edits.read(path)
    sql = "select w.*, n_calls from attention_wrappers as w"
    sql += " join attention_ops using (trace_id, op_no)"
    (row,) = analyse(path).rows(sql)
    assert (row["n_calls"], row["n_before"], row["n_behind"]) == (24, 3, 1)
    assert row["sum_us"] == pytest.approx(copied_us(trace, 24))
    # With copies of another size, nothing says that they are of its tensors.
    edit = edits.called(r"^aten::copy_$", *[longer] * len(copies(trace)))
    assert analyse(edits.save(edit(trace), tmp_path / "longer.json")).rows(sql) == []


def copies(trace: edits.Trace) -> dict[int, edits.Event]:
    return {
        event["args"]["External id"]: event
        for event in edits.timed(trace)
        if event.get("cat") == "cpu_op" and event["name"] == "aten::copy_"
    }


def longer(args: Row) -> None:
    if args["Input Dims"][0]:
        args["Input Dims"][0][0] += 1


def copied_us(trace: edits.Trace, n_calls: int) -> float:
    """Return the time of the three kernels before and the one behind each call, all of them copies
    of as many elements as its query has."""
    line, known, tensor = edits.activities(trace), copies(trace), 16 * 559 * 16 * 64
    launched = {
        event["args"].get("correlation")
        for event in edits.timed(trace)
        if event.get("cat") == "cuda_runtime"
    }
    found = [
        number
        for number, event in enumerate(line)
        if "flash_fwd" in event["name"] and event["args"]["correlation"] in launched
    ]
    assert len(found) == n_calls
    around = [line[at + step] for at in found for step in (-3, -2, -1, 1)]
    for event in around:
        dims = known[event["args"]["External id"]]["args"]["Input Dims"][0]
        assert math.prod(dims) == tensor
    return float(sum(event["dur"] for event in around))
