"""What the selection options choose, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Run, answer, refused
from plain_reading import seconds_of_passes

from fixtures import Pass, Scenario, serving
from trace_sql.errors import ExitCode


def test_phase(run: Run, demo: str) -> None:
    prefill = run("passes", demo, "--phase", "prefill", "--format", "json")
    assert [row["pass_no"] for row in answer(prefill)] == [0]
    result = run("layers", demo, "--phase", "prefill")
    assert result.stderr.startswith("pass 0: no steady state, it is the only complete prefill pass")
    assert "Layers of pass 0" in result.stdout
    decode = answer(run("perfetto", demo, "--phase", "decode", "--format", "json"))
    assert [row["pass_no"] for row in decode] == list(range(1, 8))


@pytest.mark.parametrize("name", ["attention", "anchors", "devices"])
def test_phase_where_it_selects_nothing(name: str, run: Run, demo: str) -> None:
    result = run(name, demo, "--phase", "decode")
    assert "--phase decode selects nothing here" in result.stderr
    assert run(name, demo).stdout == result.stdout


def test_from_and_to(run: Run, demo: str) -> None:
    passes = answer(run("perfetto", demo, "--format", "json"))
    cut = ["--from", f"{passes[2]['start_s']:.9f}", "--to", f"{passes[4]['end_s']:.9f}"]
    result = run("passes", demo, *cut, "--format", "json")
    assert [(row["start_s"], row["end_s"]) for row in answer(result)] == [
        (row["start_s"], row["end_s"]) for row in passes[2:5]
    ]
    assert "outside the selection" in result.stderr
    refused(run("passes", demo, "--from", "1"), ExitCode.REFUSED, "--from")
    refused(run("passes", demo, "--from", "0.1", "--to", "0.05"), ExitCode.USAGE, "--to")


@pytest.mark.parametrize("option", ["--device", "--pid"])
def test_devices_are_told_apart(
    run: Run, made: Callable[[str, Scenario], Path], option: str
) -> None:
    path = made("two", Scenario(passes=serving(1, 1, 3), devices=2))
    count = ("--num-layers", "3")
    refused(run("passes", path, *count), ExitCode.REFUSED, "device 0", "device 1", option)
    for device in (0, 1):
        result = run("passes", path, *count, option, device, "--format", "json")
        shown = [(row["start_s"], row["end_s"]) for row in answer(result)]
        assert shown == seconds_of_passes(path, device)
        assert len(shown) == 5
    assert seconds_of_passes(path, 0) != seconds_of_passes(path, 1)
    refused(run("passes", path, *count, option, "7"), ExitCode.REFUSED, option)


def test_a_wrong_layer_count_is_refused_with_the_nearest(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("plain", Scenario(passes=serving(1, 1, 3)))
    result = run("passes", path, "--num-layers", "4")
    refused(result, ExitCode.REFUSED, "6 anchors", "N=4 gives 8", "residue -2", "fit N=3")
    shown = run("anchors", path, "--num-layers", "4")
    assert shown.exit_code == ExitCode.OK, "anchors explains what is refused"
    assert "refused" in shown.stdout and "residue -2" in shown.stdout
    for command in ("layers", "perfetto", "report"):
        refused(run(command, path, "--num-layers", "4"), ExitCode.REFUSED, "residue -2")
    refused(run("kernels", path, "--num-layers", "4", "--layer", "0"), ExitCode.REFUSED, "residue")


def test_a_named_anchor_takes_the_place_of_the_rules(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("plain", Scenario(passes=serving(1, 1, 3)))
    count = ("--num-layers", "3")
    rows = answer(run("passes", path, *count, "--format", "json"))
    # One attention kernel a layer: blocks from attention to attention.
    anchor = ("--anchor-kernel", "BatchQKApplyRotaryPosIds", "--blocks-per-layer", "1")
    by_anchor = answer(run("passes", path, *count, *anchor, "--format", "json"))
    assert len(by_anchor) == len(rows)
    shown = run("anchors", path, *count, *anchor)
    assert "BatchQKApplyRotaryPosIds" in shown.stdout
    assert "1*N" in shown.stdout
    # Counts that leave a residue are refused, whatever the user says.
    two = ("--anchor-kernel", "BatchQKApplyRotaryPosIds", "--blocks-per-layer", "2")
    refused(run("passes", path, *count, *two), ExitCode.REFUSED, "3 anchors", "2*N", "residue -3")
    refused(run("passes", path, *count, "--anchor-kernel", "nosuch"), ExitCode.REFUSED)
    offset = ("--anchor-kernel", "FusedAddRMSNorm", "--anchor-offset", "1")
    refused(run("passes", path, *offset), ExitCode.USAGE, "--num-layers or --config")
    none = ("--anchor-kernel", "FusedAddRMSNorm", "--blocks-per-layer", "0")
    refused(run("passes", path, *count, *none), ExitCode.USAGE, "--blocks-per-layer")


def test_no_steady_state_asks_for_a_pass(run: Run, made: Callable[[str, Scenario], Path]) -> None:
    slow = tuple(Pass("decode", 8, slow=factor) for factor in (1.0, 2.0, 3.0, 5.0))
    path = made("growing", Scenario(passes=slow))
    count = ("--num-layers", "3")
    for words in (["layers"], ["kernels", "--layer", "1"], ["perfetto", "--layers", "1"]):
        result = run(words[0], path, *count, *words[1:])
        refused(result, ExitCode.REFUSED, "no steady state", "4 complete passes", "--pass")
    refused(run("report", path, *count), ExitCode.REFUSED, "--pass")
    assert "steady" not in run("passes", path, *count).stdout
    assert run("layers", path, *count, "--pass", "2").exit_code == ExitCode.OK


def test_the_only_pass_is_shown_and_said(run: Run, made: Callable[[str, Scenario], Path]) -> None:
    path = made("single", Scenario(passes=(Pass(),)))
    result = run("layers", path, "--num-layers", "3")
    assert result.exit_code == ExitCode.OK
    assert result.stderr.startswith("pass 0: no steady state, it is the only complete pass")


def test_a_looped_pass_is_split_by_loop_or_refused(
    run: Run, made: Callable[[str, Scenario], Path]
) -> None:
    path = made("looped", Scenario(passes=serving(0, 0, 4), loops=2))
    count = ("--num-layers", "3")
    result = run("layers", path, *count)
    if result.exit_code != ExitCode.OK:
        refused(result, ExitCode.REFUSED, "12 anchors", "N=3", "residue 6", "fit N=6")
        return
    assert "Loop" in result.stdout
    shown = run("perfetto", path, *count, "--pass", "0", "--layers", "1", "--format", "json")
    assert [row["loop_no"] for row in answer(shown)["layers"]] == [0, 1]
    assert run("kernels", path, *count, "--layer", "1", "--loop", "1").exit_code == ExitCode.OK


def test_an_empty_selection_names_what_there_is(run: Run, demo: str) -> None:
    result = run("passes", demo, "--device", 99)
    assert result.exit_code == ExitCode.REFUSED
    assert "kernels run on device 0 (pid 0)" in result.stderr
    backwards = run("passes", demo, "--from", 2, "--to", 1)
    assert backwards.exit_code == ExitCode.USAGE
    assert "--from 2 is not before --to 1" in backwards.stderr
