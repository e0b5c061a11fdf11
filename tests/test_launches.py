"""Who launched it: by correlation, by arrow, for which step."""

from __future__ import annotations

import pytest
from events_made import US, Event, Load, arrow, call, kernel, linked, oddities, one, operator


def test_nothing_is_launched_by_a_correlation_of_none(load: Load) -> None:
    nones = [0, -1, None]
    trace = load(
        *(call(10 * number, none) for number, none in enumerate(nones * 3)),
        *(
            kernel(f"k{number}", 200 + 10 * number, 5, none)
            for number, none in enumerate(nones * 3)
        ),
    )
    row = one(trace, "device_coverage")
    assert (row["n_linked"], row["n_unlinked"]) == (0, 9)


@pytest.mark.parametrize(
    ("cat", "name"),
    [
        ("cuda_runtime", "cudaLaunchKernelExC_v99"),
        ("cuda_driver", "cuLaunchKernelEx"),
        ("Runtime", "someNewCall"),
        ("privateuse1_driver", "toyEnqueue"),
        ("xpu_runtime", "urEnqueueKernelLaunch"),
        ("cpu_op", "triton_launch"),
        ("", "nameless"),
    ],
)
def test_whoever_shares_the_correlation_is_the_launch(load: Load, cat: str, name: str) -> None:
    trace = load(call(10, 6, name, cat=cat), kernel("k", 30, 5, 6))
    assert linked(trace) == {"k": name}


def test_of_several_that_share_it_the_runtime_call_is_the_launch(load: Load) -> None:
    trace = load(
        operator("op", 8, 20, args={"correlation": 6}),
        call(10, 6, "hipLaunchKernel"),
        {**kernel("wait", 30, 50, 6, stream=1_000_007), "cat": "cuda_sync"},
        kernel("range", 30, 50, 6, cat="gpu_user_annotation"),
        kernel("k", 30, 5, 6),
    )
    assert linked(trace) == {"k": "hipLaunchKernel"}
    assert one(trace, "device_times")["sum_dur_ns"] == 5 * US


def test_arrows_link_what_has_no_correlation(load: Load) -> None:
    trace = load(
        operator("op", 10, 8),
        call(10, None, "first"),
        call(20, None, "second"),
        call(30, 3, "third"),
        *(arrow("s", 2**63 + number, 10 * number, 900, 900) for number in (1, 2)),
        *(arrow("f", 2**63 + number, 100 * number, 0, 7) for number in (1, 2)),
        # The correlation counts, not where this arrow comes from.
        *(arrow("s", 3, 10, 900, 900), arrow("f", 3, 300, 0, 7)),
        *(arrow("f", 4, 400, 0, 7), arrow("s", 5, 30, 900, 900)),
        *(kernel(f"k{number}", 100 * number, 5) for number in (1, 2)),
        kernel("k3", 300, 5, 3),
        kernel("k4", 400, 5),
    )
    assert linked(trace) == {"k1": "first", "k2": "second", "k3": "third"}
    row = one(trace, "device_coverage")
    assert (row["n_linked"], row["n_by_arrow"], row["n_unlinked"]) == (3, 2, 1)
    assert oddities(trace) == {"no launch": 1, "arrow without tail": 1, "arrow without head": 1}


def test_one_arrow_to_many_is_a_graph(load: Load) -> None:
    trace = load(
        call(10, None, "toyReplay"),
        arrow("s", 1, 10, 900, 900),
        *(kernel(f"k{number}", 100 * number, 5) for number in (1, 2, 3)),
        *(arrow("f", 1, 100 * number, 0, 7) for number in (1, 2, 3)),
    )
    assert one(trace, "device_coverage")["n_via_graph"] == 3


def test_launches_without_work_are_counted(load: Load) -> None:
    trace = load(
        *(call(100 * number, number, "cudaGraphLaunch") for number in (1, 2, 3)),
        call(400, 4),
        call(500, 5, "cudaStreamSynchronize"),
        kernel("a", 150, 5, 1),
        kernel("b", 160, 5, 1),
    )
    assert oddities(trace) == {"graph without work": 2, "launch without work": 1}


def test_work_belongs_to_the_step_that_launched_it(load: Load) -> None:
    def step(ts: int, number: int) -> list[Event]:
        mark = {"ph": "X", "cat": "user_annotation", "name": "step[DECODE bs=2]", "ts": ts}
        mark |= {"pid": 900, "tid": 900, "dur": 50, "args": {"External id": number}}
        copies = [
            {**mark, "cat": "gpu_user_annotation", "pid": 0, "tid": stream, "ts": 5000 + ts}
            for stream in (7, 8, 9)
        ]
        return [mark, *copies, call(ts + 10, number, "cudaGraphLaunch")]

    replay = [
        kernel(f"k{count}", 5000 + 10 * count, 5, 1, stream=7 + count % 2) for count in range(4)
    ]
    trace = load(*step(100, 1), *step(200, 2), *replay)
    rows = trace.rows("select n_kernels, n_launches, busy_ns from step_times order by step_no")
    assert [tuple(row.values()) for row in rows] == [(4, 1, 20 * US), (0, 0, 0)]
    copies = trace.rows("select name from annotations where side = 'device' and copy_no = 0")
    assert len(copies) == 2
    assert oddities(trace) == {"graph without work": 1}
