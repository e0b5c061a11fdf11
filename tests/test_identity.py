"""What something ran on: ranks, processes, devices and streams; what is the same row twice."""

from __future__ import annotations

from typing import Any

import pytest
from events_made import US, Event, Load, arrow, call, kernel, linked, oddities, one, operator


def test_ranks_of_a_merged_file_are_kept_apart(load: Load) -> None:
    events = []
    for rank in range(3):
        label = f"[TP0{rank}-DP01]"
        events += [
            operator(f"op{rank}", 95, 30, 5, pid=f"{label} {40 + rank}", tid=1),
            call(100 + rank, 77, f"launch{rank}", pid=f"{label} {40 + rank}", tid=1, external=5),
            # Every process calls its only device 0.
            kernel(f"k{rank}", 140 + rank, 10 + rank, 77, pid=f"{label} 0", external=5),
            arrow("s", 77, 100 + rank, f"{label} {40 + rank}", 1),
            arrow("f", 77, 140 + rank, f"{label} 0", 7),
        ]
    trace = load(*events, distributedInfo={"rank": 0, "world_size": 4})
    assert linked(trace) == {f"k{rank}": f"launch{rank}" for rank in range(3)}
    rows = trace.rows("from device_times order by rank_label")
    assert [(row["rank_label"], row["device"], row["sum_dur_ns"]) for row in rows] == [
        (f"[TP0{rank}-DP01]", 0, (10 + rank) * US) for rank in range(3)
    ]
    operators = trace.rows("select name, operator from kernels order by name")
    assert [row["operator"] for row in operators] == ["op0", "op1", "op2"]
    assert not any(row["via_graph"] for row in trace.rows("from launches"))
    assert (
        trace.rows("select n_overruns, n_repeated from device_coverage")
        == [{"n_overruns": 0, "n_repeated": 0}] * 3
    )
    assert oddities(trace) == {}


def test_arrows_do_not_cross_ranks(load: Load) -> None:
    trace = load(
        call(100, None, "launch0", pid="[TP00] 40"),
        arrow("s", 7, 100, "[TP00] 40", 900),
        kernel("k1", 140, 10, pid="[TP01] 1", device=1),
        arrow("f", 7, 140, "[TP01] 1", 7),
    )
    assert linked(trace) == {}
    assert oddities(trace) == {
        "no launch": 1,
        "launch without work": 1,
        "arrow without tail": 1,
        "arrow without head": 1,
    }


def test_a_merged_file_without_device_numbers(load: Load) -> None:
    def bare(name: str, pid: str, dur: int) -> Event:
        event = kernel(name, 10, dur, 1, pid=pid)
        del event["args"]["device"]
        return event

    trace = load(bare("a", "[TP00] 0", 5), bare("b", "[TP01] 1", 6))
    rows = trace.rows("select device, rank_label, busy_ns from device_times order by device")
    assert [tuple(row.values()) for row in rows] == [
        (0, "[TP00]", 5 * US),
        (1, "[TP01]", 6 * US),
    ]


@pytest.mark.parametrize("pid", [0, 1, "1", "python", "", None, -4])
def test_the_host_is_never_taken_for_a_device(load: Load, pid: Any) -> None:
    trace = load(
        operator("op", 0, 50, 1, pid=pid),
        call(10, 1, pid=pid, external=1),
        kernel("a", 30, 10, 1, external=1),
        kernel("b", 30, 20, 1, device=1),
    )
    rows = trace.rows("select device, busy_ns from device_times order by device")
    assert [tuple(row.values()) for row in rows] == [(0, 10 * US), (1, 20 * US)]
    assert linked(trace) == {"a": "cudaLaunchKernel", "b": "cudaLaunchKernel"}


def test_names_of_streams_and_old_spellings(load: Load) -> None:
    def old(cat: str, name: str, ts: int) -> Event:
        event = kernel(name, ts, 5, cat=cat)
        del event["args"]["stream"], event["args"]["device"]
        return {**event, "tid": "stream 17", "pid": "2"}

    trace = load(old("Kernel", "k", 10), old("Memcpy", "c", 20), old("Memset", "f", 30))
    rows = trace.rows("select kind, device, stream from activities order by start_ns")
    assert [tuple(row.values()) for row in rows] == [
        ("kernel", 2, 17),
        ("copy", 2, 17),
        ("fill", 2, 17),
    ]


def test_streams_of_any_number(load: Load) -> None:
    numbers = [0, 7, 94123456789012, 2**62]
    trace = load(*(kernel("k", 10, 5, stream=number) for number in numbers))
    streams = trace.rows("select stream from activities order by stream")
    assert [row["stream"] for row in streams] == numbers
    assert one(trace, "device_times")["busy_ns"] == 5 * US


def test_categories_that_are_no_work_are_listed(load: Load) -> None:
    others = ["hpu_op", "mtia_ccp_events", "hardware_counters", "something new"]
    trace = load(
        kernel("k", 10, 5),
        *(kernel("x", 10, 500, cat=cat) for cat in others),
        {"ph": "C", "name": "power", "pid": 0, "ts": 1, "args": {"w": 3}},
        {},
    )
    rows = trace.rows("select cat, taken_as from event_categories where ph = 'X'")
    assert {row["cat"]: row["taken_as"] for row in rows} == {
        "kernel": "work",
        **dict.fromkeys(others, "other"),
    }
    assert one(trace, "device_times")["sum_dur_ns"] == 5 * US
    assert trace.rows("select sum(n_events)::int as n from event_categories") == [{"n": 7}]


@pytest.mark.parametrize(
    ("cats", "taken_as", "host"),
    [
        (["kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"], "work", False),
        (["cuda_sync", "xpu_sync", "cuda_event", "overhead"], "wait", False),
        (["Trace"], "span", False),
        (["gpu_user_annotation"], "annotation", False),
        (["cuda_profiler_range", "collective_comm"], "other", False),
        (["user_annotation"], "annotation", True),
        (["cuda_runtime", "Runtime", "cuda_driver", "xpu_runtime"], "launch", True),
        (["cpu_op", "Operator"], "operator", True),
        (["python_function"], "frame", True),
        (["something new", ""], "other", True),
    ],
)
def test_a_category_stands_on_one_side(
    load: Load, cats: list[str], taken_as: str, host: bool
) -> None:
    trace = load(*(kernel("x", 10, 5, cat=cat) for cat in cats))
    rows = trace.rows("select cat, taken_as, is_host_side(cat) as host from event_categories")
    assert sorted(tuple(row.values()) for row in rows) == sorted(
        (cat, taken_as, host) for cat in cats
    )


def test_rows_written_twice_count_once(load: Load) -> None:
    twice = kernel("k", 100, 10, 1)
    trace = load(
        call(50, 1),
        *[twice] * 3,
        kernel("k", 100, 10, 1, stream=8),
        kernel("k", 100, 10, 1, device=1),
        kernel("k", 100, 10, 2),
        kernel("k", 100, 10.001, 1),
        kernel("other", 100, 10, 1),
    )
    rows = trace.rows("from device_coverage order by device")
    assert [(row["n_rows"], row["n_repeated"], row["n_activities"]) for row in rows] == [
        (7, 2, 5),
        (1, 0, 1),
    ]
    assert oddities(trace)["repeated row"] == 2
    assert trace.rows("select count(*) as n from events where cat = 'kernel'") == [{"n": 8}]
    assert trace.rows("select min(event_id) as n from activities") == [{"n": 1}]
