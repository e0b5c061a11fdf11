"""Which operator made a call: by its ids, else by the time of the call."""

from __future__ import annotations

import pytest
from events_made import Load, call, kernel, oddities, one, operator


def test_the_external_id_of_the_call_stands_in_for_that_of_the_kernel(load: Load) -> None:
    trace = load(
        operator("mm", 0, 90, 9),
        # Its correlation is another operator's id.
        operator("wrong", 200, 5, 50),
        call(10, 50, external=9),
        kernel("k", 30, 5, 50),
    )
    assert one(trace, "kernels")["operator"] == "mm"


@pytest.mark.parametrize(
    ("start", "dur", "found"),
    [
        (54.85, 7.78, "outer"),
        (45, 4, "outer"),
        (50, 2, "inner"),
        (49.9, 3, "inner"),
        (74, 30, None),
        (5, 4, None),
    ],
)
def test_without_ids_time_tells_the_operator(
    load: Load, start: float, dur: float, found: str | None
) -> None:
    trace = load(
        operator("outer", 15, 60),
        operator("inner", 50, 5),
        {**call(start, 8), "dur": dur},
        kernel("k", 190, 5, 8),
    )
    assert one(trace, "kernels")["operator"] == found


def test_operators_that_cross_each_other(load: Load) -> None:
    trace = load(
        operator("first", 10, 20),
        operator("second", 20, 20),
        *({**call(ts, ts), "dur": 2} for ts in (12, 24, 34)),
        *(kernel(f"k{ts}", 100 + ts, 1, ts) for ts in (12, 24, 34)),
    )
    rows = {row["name"]: row["operator"] for row in trace.rows("from kernels")}
    assert rows == {"k12": "first", "k24": "second", "k34": "second"}
    assert oddities(trace) == {"crossing range": 1}


def test_stacks_of_any_depth(load: Load) -> None:
    depth = 2000
    trace = load(
        *(operator(f"f{level}", level, 4 * depth - 2 * level) for level in range(depth)),
        call(depth + 10, 1),
        kernel("k", 9 * depth, 5, 1),
    )
    assert one(trace, "kernels")["operator"] == f"f{depth - 1}"
    assert oddities(trace) == {}
