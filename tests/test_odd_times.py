"""Times as no clock gives them: what counts, what is in no sum, how begins find ends."""

from __future__ import annotations

from typing import Any

import pytest
from events_made import US, Event, Load, call, flaws, kernel, linked, oddities, one


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
