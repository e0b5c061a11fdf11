"""When something ran, on what, and who launched it: kinds of odd files, each made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Analyse, Analysed

US = 1000
Event = dict[str, Any]
Load = Callable[..., Analysed]


def kernel(name: str, ts: Any, dur: Any, correlation: Any = None, **other: Any) -> Event:
    """A kernel; `device`, `stream`, `pid`, `cat` and `external` may be said."""
    device, stream = other.pop("device", 0), other.pop("stream", 7)
    args = {"device": device, "stream": stream, "correlation": correlation}
    args["External id"] = other.pop("external", None)
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": ts}
    args = {key: value for key, value in args.items() if value is not None}
    return {**event, "dur": dur, "args": args, **other}


def call(ts: Any, correlation: Any, name: str = "cudaLaunchKernel", **other: Any) -> Event:
    """A host call of 5 us."""
    args = {"correlation": correlation, "External id": other.pop("external", None)}
    args = {key: value for key, value in args.items() if value is not None}
    event = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 900, "tid": 900, "ts": ts}
    return {**event, "dur": 5, "args": args, **other}


def operator(name: str, ts: Any, dur: Any, external: int | None = None, **other: Any) -> Event:
    args = {} if external is None else {"External id": external}
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 900, "tid": 900, "ts": ts}
    return {**event, "dur": dur, "args": args, **other}


def arrow(phase: str, number: Any, ts: Any, pid: Any, tid: Any) -> Event:
    return {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, "ts": ts} | {
        "pid": pid,
        "tid": tid,
    }


@pytest.fixture
def load(analyse: Analyse, tmp_path: Path) -> Load:
    """Write these events, and keys of the document, to a file and open it."""

    def write(*events: Event, **document: Any) -> Analysed:
        path = tmp_path / "odd.json"
        path.write_text(json.dumps({**document, "traceEvents": events}), encoding="utf-8")
        return analyse(path)

    return write


def one(trace: Analysed, view: str) -> dict[str, Any]:
    (row,) = trace.rows(f"from {view}")
    return row


def oddities(trace: Analysed) -> dict[str, int]:
    return {row["oddity"]: row["n"] for row in trace.rows("from trace_oddities")}


def flaws(trace: Analysed) -> dict[str, str | None]:
    return {row["name"]: row["flaw"] for row in trace.rows("select name, flaw from activities")}


def linked(trace: Analysed) -> dict[str, str]:
    """Names of kernels and of what launched them."""
    rows = trace.rows("select name, launch_name from kernels where launch_event_id is not null")
    return {row["name"]: row["launch_name"] for row in rows}


# Time.


@pytest.mark.parametrize("late", [True, False])
def test_a_start_of_zero_is_none_where_all_else_is_late(load: Load, late: bool) -> None:
    start = 7_000_000 if late else 3
    trace = load(kernel("first", 0, 2), kernel("a", start, 4, 1), kernel("b", start + 10, 6, 2))
    row = one(trace, "device_times")
    assert flaws(trace)["first"] == ("no_time" if late else None)
    assert (row["span_ns"], row["busy_ns"]) == (16 * US, 10 * US) if late else (19 * US, 12 * US)
    assert row["avg_kernel_ns"] == (5 * US if late else 4 * US)


def test_rows_without_any_time_are_counted_and_never_taken_for_each_other(load: Load) -> None:
    lost = [kernel("lost", 0, 0) for _ in range(3)]
    none = {**kernel("none", 0, 0), "ts": None}
    trace = load(*lost, none, kernel("good", 50, 5, 1))
    row = one(trace, "device_coverage")
    assert (row["n_without_time"], row["n_activities"], row["n_repeated"]) == (4, 5, 0)
    assert one(trace, "device_times")["span_ns"] == 5 * US


@pytest.mark.parametrize("dur", [3_400_000, 3_150.5, 900])
@pytest.mark.parametrize("cat", ["kernel", "gpu_memcpy"])
def test_a_duration_far_over_its_stream_counts_to_the_next_start(
    load: Load, dur: float, cat: str
) -> None:
    trace = load(
        kernel("a", 100, 40, 1),
        kernel("bad", 150, dur, 2, cat=cat),
        *(kernel(f"k{number}", 160 + 50 * number, 40, 3 + number) for number in range(3)),
    )
    assert flaws(trace) == {"a": None, "bad": "overrun", "k0": None, "k1": None, "k2": None}
    row = one(trace, "device_times")
    assert (row["sum_dur_ns"], row["busy_ns"]) == (170 * US, 170 * US)
    assert row["raw_sum_dur_ns"] == 160 * US + int(dur * US)
    (bad,) = trace.rows("select dur_ns, raw_dur_ns from activities where name = 'bad'")
    assert bad == {"dur_ns": 10 * US, "raw_dur_ns": int(dur * US)}


def test_two_impossible_durations_after_each_other(load: Load) -> None:
    trace = load(
        kernel("bad", 100, 2_000_000, 1),
        kernel("worse", 110, 3_000_000, 2),
        *(kernel(f"k{number}", 120 + 20 * number, 10, 3 + number) for number in range(4)),
    )
    assert (flaws(trace)["bad"], flaws(trace)["worse"]) == ("overrun", "overrun")
    assert one(trace, "device_times")["busy_ns"] == 60 * US


def test_kernels_that_start_early_are_legal(load: Load) -> None:
    # Each begins at once behind the last one's begin, waits for it, and ends after it.
    chain = [
        kernel(f"k{number}", 100 + number, 400 + 20 * number, number) for number in range(1, 9)
    ]
    trace = load(*chain)
    assert set(flaws(trace).values()) == {None}
    row = one(trace, "device_times")
    assert row["sum_dur_ns"] == row["raw_sum_dur_ns"] == sum(event["dur"] for event in chain) * US
    assert row["busy_ns"] == (chain[-1]["ts"] + chain[-1]["dur"] - chain[0]["ts"]) * US


def test_a_long_kernel_beside_other_streams_is_legal(load: Load) -> None:
    short = [kernel(f"k{number}", 100 + 20 * number, 10, number + 2) for number in range(20)]
    trace = load(kernel("long", 90, 100_000, 1, stream=20), *short)
    assert set(flaws(trace).values()) == {None}
    elsewhere = load(kernel("long", 90, 100_000, 1, device=1), *short)
    assert set(flaws(elsewhere).values()) == {None}


def test_a_stream_that_runs_work_side_by_side_is_not_cut(load: Load) -> None:
    events = []
    for number in range(12):
        events.append(kernel("wide", 10_000 * number, 4_000, 100 * number + 1))
        events += [
            kernel("inside", 10_000 * number + 20 * step, 10, 100 * number + 1 + step)
            for step in range(1, 4)
        ]
    trace = load(*events)
    assert flaws(trace) == {"wide": "beside", "inside": None}
    assert one(trace, "device_coverage")["n_beside"] == 12
    assert one(trace, "device_times")["busy_ns"] == 48_000 * US


def test_durations_below_zero_or_missing_are_in_no_sum(load: Load) -> None:
    missing = kernel("missing", 80, 0)
    del missing["dur"]
    host = {**call(10, 5), "dur": -2}
    trace = load(kernel("back", 60, -3), missing, kernel("good", 100, 10), host)
    assert flaws(trace) == {"back": "negative", "missing": "no_duration", "good": None}
    row = one(trace, "device_times")
    assert (row["sum_dur_ns"], row["busy_ns"], row["avg_kernel_ns"]) == (10 * US,) * 3
    assert one(trace, "device_coverage")["n_without_dur"] == 2
    found = oddities(trace)
    assert (found["negative duration"], found["no duration"]) == (2, 1)


def test_begins_and_ends_are_paired_by_thread(load: Load) -> None:
    def mark(ph: str, ts: float, tid: int = 1, **other: Any) -> Event:
        return {"ph": ph, "cat": "cpu_op", "pid": 900, "tid": tid, "ts": ts, **other}

    trace = load(
        mark("E", 5),
        mark("B", 10, name="outer"),
        mark("B", 12, tid=2, name="other"),
        mark("B", 20, name="inner"),
        mark("E", 30),
        mark("B", 30, name="next"),
        mark("E", 31, tid=2),
        mark("E", 35),
        mark("E", 40),
        mark("B", 50, name="open"),
        call(21, 1, tid=1),
        kernel("k", 60, 5, 1),
    )
    rows = trace.rows("select name, dur_ns from timed_events where cat = 'cpu_op'")
    assert {row["name"]: row["dur_ns"] for row in rows} == {
        "outer": 30 * US,
        "inner": 10 * US,
        "next": 5 * US,
        "other": 19 * US,
        "open": None,
    }
    assert one(trace, "activity_operators")["operator"] == "inner"
    assert oddities(trace) == {"begin without end": 1, "end without begin": 1}


def test_a_device_written_as_begins_and_ends(load: Load) -> None:
    begin = {**kernel("k", 50, 0, 1), "ph": "B"}
    del begin["dur"]
    end = {"ph": "E", "pid": 0, "tid": 7, "ts": 62.5}
    trace = load(call(40, 1), begin, end)
    row = one(trace, "device_times")
    assert (row["busy_ns"], row["n_kernels"]) == (12_500, 1)
    assert linked(trace) == {"k": "cudaLaunchKernel"}


def test_an_early_kernel_is_linked_and_left_out_of_the_mean(load: Load) -> None:
    trace = load(
        *(call(100 * number, number) for number in (1, 2, 3)),
        kernel("early", 99.5, 4, 1),
        kernel("b", 220, 4, 2),
        kernel("c", 340, 4, 3),
    )
    row = one(trace, "device_coverage")
    assert (row["n_linked"], row["n_before_launch"], row["avg_delay_ns"]) == (3, 1, 30 * US)


def test_a_window_that_ends_far_away_is_in_no_span(load: Load) -> None:
    end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 10**13}
    trace = load(kernel("k", 50, 10), end)
    assert one(trace, "device_times")["span_ns"] == 10 * US
    assert one(trace, "traces")["span_ns"] == 10 * US


def test_copies_without_time_have_no_bandwidth(load: Load) -> None:
    def copy(name: str, ts: int, dur: int, rate: Any) -> Event:
        event = kernel(name, ts, dur, cat="gpu_memcpy")
        event["args"] |= {"bytes": 1000, "memory bandwidth (GB/s)": rate}
        return event

    trace = load(copy("good", 10, 2, 0.5), copy("quick", 20, 0, 9e9), copy("text", 30, 2, "N/A"))
    rates = {row["name"]: row["gigabytes_per_second"] for row in trace.rows("from copies")}
    assert rates == {"good": 0.5, "quick": None, "text": None}


# Links.


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


# Identity.


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


# Operators.


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


# Steps.


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
