"""Odd inputs from public reports, each with its right result, as the views and commands give it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import SHARED, Analyse, Analysed
from events_made import US, oddities

from trace_sql.cli import main
from trace_sql.errors import ExitCode

CASES = SHARED / "cases"
Open = Callable[[str], Analysed]

pytestmark = pytest.mark.skipif(
    not CASES.exists(), reason="no ../shared/cases: odd inputs are not beside this checkout"
)


def file(number: str) -> Path:
    (path,) = CASES.glob(f"{number}_*.json*")
    return path


@pytest.fixture
def case(analyse: Analyse) -> Open:
    """Open the case of that number."""
    return lambda number: analyse(file(number))


def device(trace: Analysed) -> dict[str, Any]:
    (row,) = trace.rows("from device_times")
    return row


def coverage(trace: Analysed) -> dict[str, Any]:
    (row,) = trace.rows("from device_coverage")
    return row


def times(row: dict[str, Any], *names: str) -> list[float]:
    """The named times of a row, in microseconds."""
    return [row[f"{name}_ns"] / US for name in names]


def devices(path: Path, folder: Path, *words: str) -> Any:
    return CliRunner().invoke(main, ["--store", str(folder), "devices", str(path), *words])


@pytest.mark.parametrize("number", ["07", "34"])
def test_good_body(case: Open, number: str) -> None:
    trace = case(number)
    assert times(device(trace), "busy", "span", "sum_dur") == [60, 130, 60]
    kernels = trace.rows("select start_ns, dur_ns, operator, launch_name from kernels order by all")
    assert [tuple(row.values()) for row in kernels] == [
        (140 * US, 10 * US, "aten::toy0", "cudaLaunchKernel"),
        (190 * US, 20 * US, "aten::toy1", "cudaLaunchKernel"),
        (240 * US, 30 * US, "aten::toy2", "cudaLaunchKernel"),
    ]
    links = trace.rows("select link from launches")
    assert [row["link"] for row in links] == ["correlation"] * 3
    assert oddities(trace) == {}


def test_09_metadata_after_events(case: Open) -> None:
    (row,) = case("09").rows("from traces")
    assert (row["rank"], row["rank_source"], row["world_size"]) == (3, "header", 8)
    assert row["base_time_ns"] == 1700000000000000000
    assert json.loads(row["metadata"])["distributedInfo"]["pg_count"] == 1
    assert "WARN toy line 1" in json.loads(row["warnings"])


def test_10_times_as_text_at_epoch_scale(case: Open) -> None:
    trace = case("10")
    rows = trace.rows("select name, start_ns, end_ns, dur_ns from activities order by event_id")
    assert [row["dur_ns"] for row in rows] == [300, 300, 2000]
    assert device(trace)["sum_dur_ns"] == device(trace)["busy_ns"] == 2600
    gaps = [after["start_ns"] - row["end_ns"] for row, after in zip(rows, rows[1:], strict=False)]
    assert gaps == [100, 100]


def test_11_kernels_without_a_time(case: Open, tmp_path: Path) -> None:
    trace = case("11")
    row = device(trace)
    assert times(row, "span", "busy", "avg_kernel") == [130, 60, 20]
    assert coverage(trace)["n_without_time"] == 4
    assert oddities(trace) == {"no time": 4, "no launch": 4}
    lost = trace.rows(
        "select distinct start_ns, dur_ns, selected from activities where flaw = 'no_time'"
    )
    assert lost == [{"start_ns": None, "dur_ns": None, "selected": False}]
    shown = json.loads(devices(file("11"), tmp_path, "--format", "json").stdout)
    assert shown["links"][0]["n_without_time"] == 4


def test_12_a_duration_over_its_stream(case: Open) -> None:
    trace = case("12")
    row = device(trace)
    assert times(row, "busy", "span", "sum_dur") == [190, 220, 190]
    assert row["raw_sum_dur_ns"] == 3400180 * US
    flawed = trace.rows(
        "select name, flaw, dur_ns, raw_dur_ns from activities where flaw is not null"
    )
    assert [tuple(row.values()) for row in flawed] == [
        ("toy_elem_bad", "overrun", 10 * US, 3400000 * US)
    ]
    assert oddities(trace) == {"overrun": 1}


def test_13_overlap_that_is_legal(case: Open) -> None:
    trace = case("13")
    assert times(device(trace), "sum_dur", "busy", "raw_sum_dur") == [37.5, 35, 37.5]
    assert (device(trace)["n_kernels"], oddities(trace)) == (3, {})


def test_14_shorter_than_a_microsecond(case: Open) -> None:
    row = device(case("14"))
    assert times(row, "sum_dur", "span") == [1.4, 2.25]
    assert row["avg_kernel_ns"] / US == pytest.approx(0.467, abs=0.0005)
    assert all(dur > 0 for dur in (row["busy_ns"], row["idle_ns"]))


def test_16_graph_replays(case: Open) -> None:
    trace = case("16")
    row = device(trace)
    assert (row["n_kernels"], *times(row, "sum_dur", "comm_sum")) == (12, 180, 30)
    assert (coverage(trace)["n_linked"], coverage(trace)["n_via_graph"]) == (12, 12)
    steps = trace.rows("select n_kernels, n_launches, sum_dur_ns from step_times order by step_no")
    assert [tuple(row.values()) for row in steps] == [(6, 1, 90 * US)] * 2
    copies = trace.rows(
        "select count(*) as n from annotations where side = 'device' and copy_no = 0"
    )
    assert copies == [{"n": 2}]


def test_17_kernels_long_after_their_markers(case: Open) -> None:
    trace = case("17")
    steps = trace.rows("from step_times order by step_no")
    assert [(row["n_via_graph"], row["n_kernels"], row["sum_dur_ns"]) for row in steps] == [
        (3, 4, 62 * US)
    ] * 4


def test_18_stream_zero_of_amd(case: Open) -> None:
    trace = case("18")
    row = device(trace)
    assert (row["device"], row["n_kernels"], row["n_activities"]) == (2, 3, 4)
    assert times(row, "kernel_busy", "busy", "comm_sum", "exposed_comm") == [90, 99, 40, 10]
    assert (coverage(trace)["n_linked"], coverage(trace)["n_unlinked"]) == (2, 2)
    streams = {row["stream"] for row in trace.rows("select distinct stream from activities")}
    assert streams == {0, 94123456789012}


def test_20_annotations_are_in_no_sum(case: Open) -> None:
    row = device(case("20"))
    assert times(row, "kernel_sum", "kernel_busy", "sum_dur") == [60, 50, 60]


def test_21_a_kernel_before_its_launch(case: Open) -> None:
    trace = case("21")
    rows = trace.rows("select name, launch_delay_ns from kernels order by event_id")
    assert [row["launch_delay_ns"] for row in rows] == [-2750, 11500]
    assert (coverage(trace)["n_before_launch"], coverage(trace)["avg_delay_ns"]) == (1, 11500)
    assert oddities(trace) == {"before launch": 1, "arrow without tail": 1}
    assert times(device(trace), "busy") == [13]


def test_22_metadata_only(case: Open, tmp_path: Path) -> None:
    trace = case("22")
    assert trace.verdict["verdict"] == "empty"
    for view in ("activities", "kernels", "device_times", "passes", "activity_operators"):
        result = trace.database.query(f"from {view}")
        assert result.rows == [] and result.columns[0] == "trace_id"
    result = devices(file("22"), tmp_path)
    assert result.exit_code == ExitCode.EMPTY
    assert "no device activity" in result.stderr
    assert "metadata" in result.stdout


def test_23_old_spelling(case: Open) -> None:
    trace = case("23")
    (kernel,) = trace.rows("from kernels")
    assert (kernel["stream"], kernel["dur_ns"]) == (7, 33 * US)
    assert (kernel["launch_event_id"], kernel["operator"]) == (1, "aten::toy_mm")
    (copy,) = trace.rows("from copies")
    assert (copy["dur_ns"], copy["n_bytes"]) == (4 * US, 1000)
    (row,) = trace.rows("select start_ns + span_ns as end_ns from traces")
    assert row["end_ns"] == 290 * US


def test_24_names_of_communication(case: Open) -> None:
    trace = case("24")
    row = device(trace)
    assert (row["n_comm"], *times(row, "comm_sum", "fused_sum")) == (7, 70, 10)
    rest = trace.rows("select name from kernels where category <> 'comm'")
    assert [row["name"] for row in rest] == ["void at::native::reduce_kernel<512, 1, toy>"]


def test_25_merged_ranks_that_reuse_ids(case: Open, tmp_path: Path) -> None:
    trace = case("25")
    rows = trace.rows("from device_times order by rank_label")
    assert [(row["rank_label"], row["sum_dur_ns"]) for row in rows] == [
        ("[TP00-EP00]", 10 * US),
        ("[TP01-EP01]", 15 * US),
    ]
    links = trace.rows(
        "select a.pid as device, l.pid as host, a.rank_label from activities as a"
        " join launches as l using (trace_id, event_id)"
    )
    assert len(links) == 2
    assert all(row["host"].startswith(row["rank_label"]) for row in links)
    operators = trace.rows("select event_id, operator_event_id from activity_operators")
    assert {row["event_id"]: row["operator_event_id"] for row in operators} == {9: 6, 19: 16}
    assert [row["n_in_launch"] for row in trace.rows("from launches")] == [1, 1]
    shown = json.loads(devices(file("25"), tmp_path, "--format", "json").stdout)
    assert [row["rank_label"] for row in shown["devices"]] == ["[TP00-EP00]", "[TP01-EP01]"]


def test_29_ranges_that_cross(case: Open) -> None:
    trace = case("29")
    (kernel,) = trace.rows("from kernels")
    assert kernel["operator"] == "toy::outer_backward"
    assert oddities(trace) == {"crossing range": 2}


def test_30_big_ids_and_args_of_many_shapes(case: Open) -> None:
    trace = case("30")
    (row,) = trace.rows("select args from events where name like 'nccl%'")
    assert json.loads(row["args"])["Comms Id"] == 18446744073709551610
    ids = trace.rows("select id from events where cat = 'ac2g'")
    assert [row["id"] for row in ids] == ["9007199254740993"] * 2
    changes = trace.rows("select delta_bytes from memory_changes")
    assert (len(changes), sum(row["delta_bytes"] for row in changes)) == (2, 0)
    dims = {
        row["name"]: row["dims"]
        for row in trace.rows(
            """select name, json_extract(args, '$."Input Dims"') as dims from events"""
            " where cat = 'cpu_op'"
        )
    }
    assert {name: text and json.loads(text) for name, text in dims.items()} == {
        "aten::toy_cat": [[[4, 8], [4, 8]], [], []],
        "aten::toy_mm": [[4, 8], [8, 16]],
        "toy::custom": "[[4, 8]]",
        "toy::list_args": None,
        "toy::null_args": None,
    }
    assert trace.rows("select count(*) as n from events") == [{"n": 19}]


def test_32_a_host_process_numbered_like_a_device(case: Open) -> None:
    rows = case("32").rows("from device_times order by device")
    assert [(row["device"], row["n_activities"], row["busy_ns"]) for row in rows] == [
        (0, 3, 60 * US),
        (1, 2, 30 * US),
    ]


def test_36_correlation_that_is_none(case: Open) -> None:
    trace = case("36")
    assert times(device(trace), "busy") == [90]
    row = coverage(trace)
    assert (row["n_linked"], row["n_unlinked"]) == (3, 6)
    assert len(trace.rows("from launches")) == 3


def test_37_idle_of_a_device_is_not_that_of_its_streams(case: Open) -> None:
    row = device(case("37"))
    assert times(row, "idle", "comm_sum", "exposed_comm") == [20, 180, 130]
