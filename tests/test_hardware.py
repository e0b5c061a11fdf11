"""Peaks of GPUs: the file, the user's choice, and which GPU a trace is from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from conftest import Analyse

from fixtures import Scenario
from trace_sql.analysis import create_table
from trace_sql.base_tables import BASE_TABLES, HARDWARE
from trace_sql.database import Database
from trace_sql.errors import UsageError
from trace_sql.hardware import PRECISIONS, choose_gpu, find_gpu, known_gpus, known_sources, read_gpu
from trace_sql.hardware_report import hardware
from trace_sql.output import WIDTH
from trace_sql.store import Settings, Store
from trace_sql.views import load_views, roots

GPUS = {gpu.name: gpu for gpu in known_gpus()}
RENAMED = {
    "A100 40GB (SXM/PCIe)": "A100 40GB",
    "B200 SXM (HGX)": "B200 SXM",
    "B300 SXM (HGX)": "B300 SXM",
    "MI250X (both GCDs)": "MI250X",
}
"""Names in the facts, where ours differ."""


# The file.


def test_every_fact_is_in_the_file(shared: Callable[[str], Path]) -> None:
    facts = json.loads(shared("facts/attention/hardware.json").read_text(encoding="utf-8"))
    differing = []
    for fact in facts["gpus"]:
        gpu = GPUS[RENAMED.get(fact["name"], fact["name"])]
        # A device is one of the two dies of an MI250X.
        whole = 2 if gpu.name == "MI250X" else 1
        told = {"memory_gb": "memory_gb", "sm_or_cu": "units", "hbm_tb_s": "hbm_tb_s"}
        figures = {told[key]: fact[key] for key in told} | fact["tflops_dense"]
        for key, figure in figures.items():
            # FP32 of AMD is that of matrix units here.
            if key == "fp32_vector" and gpu.vendor == "amd":
                continue
            ours = gpu.figures[key.removesuffix("_vector")]
            if figure["value"] is None:
                fits = ours.value is None and ours.status == figure["status"]
            else:
                fits = ours.value == pytest.approx(figure["value"] / whole, rel=1e-9)
            if not fits:
                differing.append((gpu.name, key, figure["value"], ours.value))
        for key, value in fact.get("measured", {}).items():
            if re.fullmatch(r"(bf16|fp16|fp8)_ma\w?f", key):
                ours = gpu.figures[key.partition("_")[0]]
                if ours.measured != value:
                    differing.append((gpu.name, key, value, ours.measured))
    assert differing == []


def test_every_figure_says_where_it_is_from() -> None:
    for gpu in GPUS.values():
        for key, figure in gpu.figures.items():
            where = f"{gpu.name} {key}"
            assert set(figure.sources) <= set(known_sources()), where
            assert not figure.measured or figure.measured_source in known_sources(), where
            if figure.status == "sourced":
                assert figure.sources and figure.value, where
            if figure.status in ("derived", "unsourced"):
                assert figure.sources or figure.note, where
            if figure.status in ("not_supported", "unknown"):
                assert figure.value is None, where


def test_every_source_vouches_for_something() -> None:
    figures = [one for gpu in GPUS.values() for one in gpu.figures.values()]
    notes = " ".join([one.note for one in figures] + [n for g in GPUS.values() for n in g.notes])
    used = {name for one in figures for name in (*one.sources, one.measured_source)}
    assert {name for name in known_sources() if name not in used and name not in notes} == set()


def test_rates_stand_in_their_order() -> None:
    # A slip of one digit, or a sparse rate, breaks the order or the ratio of 2.
    for gpu in GPUS.values():
        rate = {key: gpu.figures[key].value for key in PRECISIONS}
        if rate["bf16"] and rate["fp8"]:
            assert rate["fp8"] == pytest.approx(2 * rate["bf16"], rel=0.02), gpu.name
        if rate["fp16"] and rate["bf16"]:
            assert rate["fp16"] == rate["bf16"], gpu.name
        if rate["tf32"] and rate["bf16"]:
            assert rate["tf32"] == pytest.approx(rate["bf16"] / 2, rel=0.03), gpu.name
        if rate["fp32"] and rate["fp16"]:
            assert rate["fp32"] < rate["fp16"], gpu.name


# The choice.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100 SXM", "H100 SXM"),
        ("h100-sxm", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("b200", "B200 SXM"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA GB300", "GB300"),
        ("H20", "H20"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("MI250", "MI210"),
        ("AMD Instinct MI250X / MI250", "MI250X"),
        ("4090", "RTX 4090"),
    ],
)
def test_a_gpu_is_found_by_its_names(text: str, name: str) -> None:
    assert find_gpu(text).name == name
    assert choose_gpu(text).choice_rows() == [(name, "option", "datasheet")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("H100", ["several", "H100 SXM, H100 PCIe, H100 NVL"]),
        ("A100 80GB", ["several", "A100 80GB SXM, A100 80GB PCIe"]),
        ("MI3OOX", ["MI300X", "file"]),
        ("Voodoo 2", ["trace-sql hardware"]),
        ("", ["trace-sql hardware"]),
        ("x" * 1000, ["x" * 60 + "..."]),
        ("there-is-no.json", ["No such file"]),
    ],
)
def test_a_gpu_that_is_none_is_refused_in_one_line(text: str, parts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        choose_gpu(text)
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_a_peak_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="datasheet, measured"):
        choose_gpu(None, "boost")


def test_without_a_choice_each_trace_tells() -> None:
    assert choose_gpu().choice_rows() == [(None, None, "datasheet")]
    assert choose_gpu("auto", "measured").choice_rows() == [(None, None, "measured")]


def test_rows_are_one_a_gpu_and_precision() -> None:
    rows = choose_gpu().peak_rows()
    names = list(BASE_TABLES["hardware_peaks"])
    assert {len(row) for row in rows} == {len(names)}
    keys = [(row[0], row[3]) for row in rows]
    assert len(set(keys)) == len(keys) == len(GPUS) * len(PRECISIONS)


# A user's file.


def test_a_file_in_our_form(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "X1"\nhbm_tb_s = 1.5\nunits = 10\nbf16 = 100\n')
    chosen = choose_gpu(str(path))
    assert chosen.choice_rows() == [("X1", "file", "datasheet")]
    (row,) = [row for row in chosen.peak_rows() if row[0] == "X1" and row[3] == "bf16"]
    assert row[4:11] == (100, None, 1.5, 10, None, "file", "mine.toml")
    path.write_text('[[gpu]]\nname = "X2"\nhbm_tb_s = { value = 2, note = "n" }\n')
    assert read_gpu(path).value("hbm_tb_s") == 2


def test_an_architecture_file_has_measured_rates(tmp_path: Path) -> None:
    path = tmp_path / "MI300X.json"
    rates = {"matrix_bf16": 700, "matrix_fp32": 160, "vector_fp32": 80, "vector_fp64": 40}
    content = {"name": "MI300X", "mem_bw_gbps": 5200, "memory_gb": 192, "extra": 1}
    path.write_text(json.dumps({**content, "max_achievable_tflops": rates}))
    chosen = choose_gpu(str(path))
    own = [row for row in chosen.peak_rows() if row[0] == "MI300X"]
    assert len(own) == len(PRECISIONS), "it takes the place of ours"
    measured = {row[3]: (row[4], row[5], row[6]) for row in own}
    assert measured["bf16"] == (None, 700, 5.2)
    assert measured["fp32"] == (None, 160, 5.2)
    assert measured["fp64"] == (None, 40, 5.2)
    assert measured["fp8"] == (None, None, 5.2)


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("a.toml", "name = ", "neither TOML nor JSON"),
        ("a.json", "[1]", "one GPU"),
        ("a.json", "[" * 100000, "neither TOML nor JSON"),
        ("a.json", '{"name": "X"}', "hbm_tb_s is missing"),
        ("a.json", '{"hbm_tb_s": 1}', "name is missing"),
        ("a.json", '{"name": "X", "hbm_tb_s": 1, "bf61": 3}', "bf61 is no key"),
        ("a.json", '{"name": "X", "hbm_tb_s": "fast"}', "hbm_tb_s must be a number"),
        ("a.json", '{"name": "X", "hbm_tb_s": NaN}', "hbm_tb_s must be a number"),
        ("a.json", '{"name": "X", "hbm_tb_s": -1}', "hbm_tb_s must be a number"),
        ("a.json", '{"name": "X", "hbm_tb_s": true}', "hbm_tb_s must be a number"),
        ("a.json", '{"gpu": []}', "holds 0 GPUs"),
        ("a.json", '{"name": "X", "max_achievable_tflops": {}}', "mem_bw_gbps is missing"),
        ("a.json", '{"name": "X", "mem_bw_gbps": 1, "max_achievable_tflops": 3}', "a table"),
        ("a.json", '{"traceEvents": []}', "traceEvents is no key"),
        ("a.toml", "#" * 2_000_000, "is it a trace"),
    ],
)
def test_a_file_that_is_none_is_refused(name: str, text: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        choose_gpu(str(path))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


# Recognition.

GB = 1_000_000_000


def device(name: Any, memory: Any = None, units: Any = None, number: Any = 0) -> dict[str, Any]:
    return {"id": number, "name": name, "totalGlobalMem": memory, "numSms": units}


@cache
def views_of(option: str | None) -> duckdb.DuckDBPyConnection:
    """The views that recognise a GPU, over tables of traces to be filled."""
    connection = duckdb.connect()
    hardware = choose_gpu(option)
    for name, rows in (
        ("hardware_peaks", hardware.peak_rows()),
        ("gpu_choice", hardware.choice_rows()),
    ):
        create_table(connection, name, BASE_TABLES[name], rows)
    connection.execute(
        "create table raw_facts (trace_id VARCHAR, vendor VARCHAR, metadata VARCHAR)"
    )
    connection.execute("create table trace_settings as select 't' as trace_id, null as device")
    connection.execute("create table device_times (trace_id VARCHAR, device BIGINT)")
    for name in ("trace_devices", "trace_gpus"):
        connection.execute(f"create view {name} as {load_views()[name].text}")
    return connection


def recognised(
    devices: Any, vendor: str = "nvidia", active: tuple[int, ...] = (0,), option: str | None = None
) -> dict[str, Any]:
    """Return the row of trace_gpus of a trace with these device properties."""
    connection = views_of(option)
    for name in ("raw_facts", "device_times"):
        connection.execute(f"delete from {name}")
    metadata = json.dumps({"deviceProperties": devices})
    connection.execute("insert into raw_facts values ('t', ?, ?)", [vendor, metadata])
    connection.executemany("insert into device_times values ('t', ?)", [[n] for n in active])
    cursor = connection.execute("from trace_gpus")
    (row,) = cursor.fetchall()
    return dict(zip([column[0] for column in cursor.description or ()], row, strict=True))


@pytest.mark.parametrize(
    ("one", "gpu"),
    [
        (device("NVIDIA H100 80GB HBM3", 85_018_279_936, 132), "H100 SXM"),
        (device("NVIDIA H100 PCIe", 85_018_279_936, 114), "H100 PCIe"),
        (device("NVIDIA H100 NVL", 100_000_000_000, 132), "H100 NVL"),
        (device("NVIDIA H100", 85_018_279_936, 114), "H100 PCIe"),
        (device("NVIDIA H100", 85_018_279_936, 132), "H100 SXM"),
        (device("NVIDIA H200", 150_000_000_000, 132), "H200 SXM"),
        (device("NVIDIA H200 NVL", 150_000_000_000, 132), "H200 NVL"),
        (device("NVIDIA H20", 102_000_000_000, 78), "H20"),
        (device("NVIDIA H20", 150_000_000_000, 78), "H20 141GB"),
        (device("NVIDIA H800", 84_943_110_144, 132), "H800 SXM"),
        (device("NVIDIA A100-SXM4-40GB", 42_297_524_224, 108), "A100 40GB"),
        (device("NVIDIA A100-PG509-200", 42_297_524_224, 108), "A100 40GB"),
        (device("NVIDIA A100-SXM4-80GB", 85_000_000_000, 108), "A100 80GB SXM"),
        (device("NVIDIA A100 80GB PCIe", 85_000_000_000, 108), "A100 80GB PCIe"),
        (device("NVIDIA B200", 191_503_138_816, 148), "B200 SXM"),
        (device("NVIDIA GB200", 197_000_000_000, 148), "GB200"),
        (device("NVIDIA GB300", 297_000_000_000, 152), "GB300"),
        (device("Tesla V100-SXM2-32GB", 34_079_637_504, 80), "V100 SXM2"),
        (device("NVIDIA L4", 23_600_000_000, 58), "L4"),
        (device("NVIDIA L40S", 47_700_000_000, 142), "L40S"),
        (device("NVIDIA GeForce RTX 4090", 25_300_000_000, 128), "RTX 4090"),
        # Names alone, where a profiler tells nothing else.
        (device("NVIDIA B300"), "B300 SXM"),
        (device("NVIDIA A100-SXM4-80GB"), "A100 80GB SXM"),
    ],
)
def test_a_device_is_recognised(one: dict[str, Any], gpu: str) -> None:
    row = recognised([one])
    assert (row["gpu"], row["gpu_source"]) == (gpu, "device name")
    assert row["problem"] is None
    assert row["devices"] == one["name"]


@pytest.mark.parametrize(
    ("one", "gpu"),
    [
        (device("", 206_141_652_992, 304), "MI300X"),
        (device("AMD Radeon Graphics", 206_141_652_992, 304), "MI300X"),
        (device(None, 275_000_000_000, 304), "MI325X"),
        (device("AMD Radeon Graphics", 68_702_699_520, 104), "MI210"),
        (device("", 309_000_000_000, 256), "MI355X"),
    ],
)
def test_a_device_without_a_telling_name_is_recognised_by_its_size(
    one: dict[str, Any], gpu: str
) -> None:
    row = recognised([one], vendor="amd")
    assert (row["gpu"], row["gpu_source"]) == (gpu, "memory and units")


@pytest.mark.parametrize(
    ("devices", "part"),
    [
        ([device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * GB, 16)], "a slice"),
        ([device("NVIDIA H100 80GB HBM3 MIG 7g.80gb", 85 * GB, 132)], "a slice"),
        ([device("NVIDIA H100 80GB HBM3", 85 * GB, 66)], "of another size"),
        ([device("NVIDIA GeForce RTX 4090 Laptop GPU", 17 * GB, 76)], "of another size"),
        ([device("AMD Instinct MI300X", 25 * GB, 38)], "of another size"),
        ([device("AMD Instinct MI308X", 206 * GB, 80)], "MI308X"),
        ([device("NVIDIA A10G", 24 * GB, 80)], "NVIDIA A10G"),
        ([device("NVIDIA H100")], "H100 NVL or H100 PCIe or H100 SXM"),
        ([device("", 85 * GB, 132)], "H100 SXM or H800 SXM"),
        ([device("", 1 * GB, 1)], "no name that tells"),
        ([device("NVIDIA B200"), device("NVIDIA L4")], "different GPUs"),
        ([device("NVIDIA B200"), device("Voodoo 2")], "Voodoo 2"),
        ([], "names none"),
        (None, "names none"),
        ("a string", "names none"),
        ({"name": "NVIDIA B200"}, "names none"),
    ],
)
def test_what_is_not_certain_is_not_recognised(devices: Any, part: str) -> None:
    row = recognised(devices)
    assert row["gpu"] is None
    assert row["gpu_source"] == "unknown"
    assert part in row["problem"]
    assert row["problem"].startswith("GPU not recognised")
    assert row["problem"].endswith("--gpu NAME; `trace-sql hardware` lists them")


@pytest.mark.parametrize(
    "odd",
    [
        [1, "two", None, [], {}],
        [{"name": {"a": 1}, "totalGlobalMem": "much", "numSms": []}],
        [{"name": "NVIDIA B200", "totalGlobalMem": 1e400, "numSms": 10**30}],
        [device("'; drop table x; --", 1, 1)],
        [device("[(*+", -1, -1)],
    ],
)
def test_odd_properties_are_no_error(odd: Any) -> None:
    row = recognised(odd)
    assert row["gpu"] in (None, "B200 SXM")


def test_devices_that_did_nothing_do_not_count() -> None:
    devices = [device("NVIDIA B200", number=0), device("NVIDIA L4", number=1)]
    assert recognised(devices, active=(0,))["gpu"] == "B200 SXM"
    assert recognised(devices, active=(1,))["gpu"] == "L4"
    assert recognised(devices, active=(0, 1))["gpu"] is None
    # Numbers that are not in the list tell nothing.
    assert recognised([device("NVIDIA B200")], active=(9,))["gpu"] == "B200 SXM"


def test_a_choice_goes_before_what_a_trace_says(tmp_path: Path) -> None:
    row = recognised([device("NVIDIA B200", 191_503_138_816, 148)], option="MI300X")
    assert (row["gpu"], row["gpu_source"], row["units"]) == ("MI300X", "option", 304)
    path = tmp_path / "x.toml"
    path.write_text('name = "X1"\nhbm_tb_s = 1.5\n')
    row = recognised([device("NVIDIA B200", 191_503_138_816, 148)], option=str(path))
    assert (row["gpu"], row["gpu_source"], row["units"]) == ("X1", "file", 148)


@pytest.mark.parametrize(
    ("name", "gpu", "source"),
    [
        ("hf_vit_nsfw_h100", "H100 SXM", "device name"),
        ("hf_bert_small_mi300x", "MI300X", "device name"),
        ("vllm_gpt_oss_20b_decode_mi300x", "MI300X", "memory and units"),
        ("vllm_gpt_oss_120b_prefill_b200", "B200 SXM", "device name"),
        ("deepseek_train_h800", "H800 SXM", "device name"),
        ("train_mi250", "MI210", "memory and units"),
        ("train_nccl", "A100 40GB", "device name"),
        ("train_ns_resolution_rank0", "V100 SXM2", "device name"),
        ("ranks/sampled_rank-0", None, "unknown"),
    ],
)
def test_the_gpus_of_real_traces(
    name: str, gpu: str, source: str, shared: Callable[[str], Path], analyse: Analyse
) -> None:
    analysed = analyse(shared(f"traces/{name}.json.gz"))
    (row,) = analysed.rows("select gpu, gpu_source from trace_gpus")
    assert (row["gpu"], row["gpu_source"]) == (gpu, source)


# In a session.


def test_tables_are_made_when_they_are_named(
    made: Callable[[str, Scenario], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    trace_id = store.ingest(made("dense", Scenario())).trace_id
    with Database(store, {trace_id: Settings()}, hardware=choose_gpu("MI300X")) as database:
        assert database.query("select gpu, gpu_source from trace_gpus").rows == [
            ("MI300X", "option")
        ]
        assert database.ask("select peak from gpu_choice").rows == [("datasheet",)]
        asked = "select count(distinct gpu) from hardware_peaks"
        assert database.ask(asked).rows == [(len(GPUS),)]

    def unwanted(*_: object) -> None:
        raise AssertionError("no question was about hardware")

    monkeypatch.setattr("trace_sql.hardware.choose_gpu", unwanted)
    with Database(store, {trace_id: Settings()}) as database:
        assert database.query("select count(*) from traces").rows == [(1,)]


def test_another_choice_repeats_nothing_that_knows_no_gpu(
    made: Callable[[str, Scenario], Path], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    trace_id = store.ingest(made("dense", Scenario())).trace_id
    written: list[dict[Path, int]] = []
    peaks = []
    for gpu in ("MI300X", "H100 SXM"):
        with Database(store, {trace_id: Settings()}, hardware=choose_gpu(gpu)) as database:
            peaks += database.query("select gpu from trace_peaks where precision = 'bf16'").rows
        files = store.entry(trace_id).folder.rglob("*.parquet")
        written.append({path: path.stat().st_mtime_ns for path in files})
    assert peaks == [("MI300X",), ("H100 SXM",)]
    first, second = written
    assert first.items() <= second.items(), "nothing is written again"
    views = {path.stem for path in second.keys() - first.keys()}
    assert views
    assert all(roots(view) & set(HARDWARE) for view in views)


# The command.


@pytest.mark.parametrize("words", [[], ["H100 SXM"], ["mi300x"], ["RTX 5090"], ["GB300"]])
def test_the_command_fits_a_terminal(words: list[str]) -> None:
    result = CliRunner().invoke(hardware, words)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= WIDTH


def test_the_command_lists_all_and_shows_one() -> None:
    listed = json.loads(CliRunner().invoke(hardware, ["--format", "json"]).stdout)
    assert [row["gpu"] for row in listed["gpus"]] == list(GPUS)
    one = json.loads(CliRunner().invoke(hardware, ["MI300X", "--format", "json"]).stdout)
    figures = {row["figure"]: row for row in one["figures"]}
    assert (figures["bf16_tflops"]["value"], figures["bf16_tflops"]["measured"]) == (1307.4, 708)
    assert figures["fp4_tflops"]["status"] == "not supported"
    assert {row["source"] for row in one["sources"]} >= {"torch_devinfo", "maf"}
    assert one["notes"]


def test_the_command_refuses_what_it_does_not_know() -> None:
    result = CliRunner().invoke(hardware, ["H1000"])
    assert isinstance(result.exception, UsageError)
    assert "nearest" in str(result.exception)
