"""Peaks of GPUs, from `profiles/attention/hardware.toml` or a user's file, and the user's choice.

Rates are TFLOPS (1e12 operations a second, dense), bandwidth is TB/s (1e12 bytes), memory is GB
(1e9 bytes). Which GPU a trace is from is found by the view `trace_gpus`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from trace_sql.errors import UsageError
from trace_sql.resources import data_folder
from trace_sql.toml_table import Table

PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32", "fp64", "int8")
PEAKS = ("datasheet", "measured")
UNKNOWN = "--gpu NAME; `trace-sql hardware` lists them"
"""What to do about a GPU that is not known."""

_STATUS = ("sourced", "derived", "unsourced", "not_supported", "file")
_MOST_BYTES = 1 << 20
_FIGURES = ("memory_gb", "units", "hbm_tb_s", *PRECISIONS)
_KINDS = {
    "file": "notes sources gpu",
    "gpu": f"name vendor match notes {' '.join(_FIGURES)}",
    "figure": "value status from note measured measured_from",
}
_NOT_A_MODEL = re.compile(r"nvidia|amd|instinct|geforce|tesla|[^a-z0-9]")
"""What a name may have or lack and mean the same GPU."""


@dataclass(frozen=True)
class Figure:
    """A figure of a GPU with what vouches for it: a value as printed, and one as measured."""

    value: float | None = None
    status: str = "unknown"
    """sourced, derived, unsourced, not_supported, file, or unknown where there is no figure."""
    sources: tuple[str, ...] = ()
    measured: float | None = None
    measured_source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Gpu:
    """A GPU as one device of a trace; `match` is one pattern for its names there."""

    name: str
    vendor: str
    match: str
    figures: Mapping[str, Figure]
    """By memory_gb, units (SMs or CUs), hbm_tb_s and each of PRECISIONS."""
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """Return a figure as printed."""
        return self.figures[name].value


@dataclass(frozen=True)
class Hardware:
    """The GPUs that are known, and what the user chose of them."""

    gpus: tuple[Gpu, ...]
    chosen: str | None = None
    """Name of the GPU of all traces; None: each trace tells its own."""
    source: str | None = None
    """Where `chosen` is from: option or file."""
    peak: str = "datasheet"

    def peak_rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of the table `hardware_peaks`."""
        return [row for gpu in self.gpus for row in _rows(gpu)]

    def choice_rows(self) -> list[tuple[Any, ...]]:
        """Return the one row of the table `gpu_choice`."""
        return [(self.chosen, self.source, self.peak)]


def _rows(gpu: Gpu) -> Iterator[tuple[Any, ...]]:
    units = gpu.value("units")
    for precision in PRECISIONS:
        rate = gpu.figures[precision]
        yield (
            gpu.name,
            gpu.vendor,
            gpu.match,
            precision,
            rate.value,
            rate.measured,
            gpu.value("hbm_tb_s"),
            None if units is None else int(units),
            gpu.value("memory_gb"),
            rate.status,
            ", ".join(rate.sources) or None,
            rate.note or None,
        )


@cache
def known_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs of the file that comes with us, in its order; raises UsageError if odd."""
    path = _own_file()
    return tuple(_own_form(tomllib.loads(path.read_text(encoding="utf-8")), path.name))


@cache
def known_sources() -> Mapping[str, str]:
    """Return what the short names of sources in that file stand for."""
    data = tomllib.loads(_own_file().read_text(encoding="utf-8"))
    return dict(data["sources"])


@cache
def known_notes() -> tuple[str, ...]:
    """Return the remarks of that file that hold for all GPUs."""
    return tuple(tomllib.loads(_own_file().read_text(encoding="utf-8"))["notes"])


def _own_file() -> Path:
    return data_folder("profiles") / "attention" / "hardware.toml"


def choose_gpu(option: str | None = None, peak: str = "datasheet") -> Hardware:
    """Return the hardware for `--gpu option --peak peak`.

    `option` is the name of a GPU, a file with one, or None or "auto" to have each trace tell.
    Raises UsageError with the nearest names for one that is unknown or means several.
    """
    if peak not in PEAKS:
        raise UsageError(f"--peak {peak!r}: choose one of {', '.join(PEAKS)}")
    known = known_gpus()
    if option is None or option.strip().lower() == "auto":
        return Hardware(known, peak=peak)
    path = Path(option)
    if path.suffix.lower() in (".toml", ".json") or _is_file(path):
        own = read_gpu(path)
        others = tuple(gpu for gpu in known if gpu.name != own.name)
        return Hardware((own, *others), own.name, "file", peak)
    return Hardware(known, find_gpu(option).name, "option", peak)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def find_gpu(name: str) -> Gpu:
    """Return the one known GPU that `name` means, by our name or by that of a device.

    Raises UsageError, with the nearest names, where it means none or several.
    """
    known = known_gpus()
    plain = _plain(name)
    exact = [gpu for gpu in known if _plain(gpu.name) == plain]
    longest: dict[str, int] = {}
    for gpu in known:
        if found := re.search(gpu.match, name, re.IGNORECASE):
            longest[gpu.name] = len(found[0])
    best = [gpu for gpu in known if longest.get(gpu.name) == max(longest.values(), default=0)]
    parts = [gpu for gpu in known if plain and plain in _plain(gpu.name)]
    for group in (exact, best, parts):
        if len(group) == 1:
            return group[0]
    shown = name if len(name) <= 60 else f"{name[:60]}..."
    if several := parts or best:
        listed = ", ".join(gpu.name for gpu in several)
        raise UsageError(f"{shown!r} means several GPUs: {listed}; give one of them")
    import difflib

    by_plain = {_plain(gpu.name): gpu.name for gpu in known}
    near = [by_plain[one] for one in difflib.get_close_matches(plain, by_plain, cutoff=0.5)]
    hint = f"the nearest are {', '.join(near)}" if near else "`trace-sql hardware` lists them"
    raise UsageError(f"no GPU {shown!r} is known; {hint}, or give a file with its peaks")


def _plain(name: str) -> str:
    return _NOT_A_MODEL.sub("", name.lower())


def read_gpu(path: Path) -> Gpu:
    """Return the one GPU of a user's file.

    TOML or JSON: our own form, one `gpu` or its keys alone with plain numbers; or an architecture
    file with `mem_bw_gbps` and `max_achievable_tflops`, whose rates are taken as measured. Raises
    UsageError that names file and key.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"--gpu {path}: too large for the figures of a GPU; is it a trace?")
        data = _parsed(path.read_bytes().decode("utf-8"), path.suffix.lower())
    except OSError as error:
        raise UsageError(f"--gpu {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--gpu {path}: neither TOML nor JSON ({error})") from None
    where = path.name
    if not isinstance(data, dict):
        raise UsageError(f"{where}: must hold the figures of one GPU")
    if "max_achievable_tflops" in data:
        return _architecture(data, where)
    if "gpu" not in data:
        data = {"gpu": [data]}
    gpus = list(_own_form(data, where))
    if len(gpus) != 1:
        raise UsageError(f"{where}: holds {len(gpus)} GPUs; give a file with one")
    # Chosen by the file, it needs no name of a device; a pattern would run as it stands.
    return replace(gpus[0], match="")


def _parsed(text: str, suffix: str) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text)
    import json

    return json.loads(text)


def _own_form(data: object, where: str) -> Iterator[Gpu]:
    for table in Table(data, "file", where, _KINDS).children("gpu"):
        figures = {name: _figure(table, name, where) for name in _FIGURES}
        if figures["hbm_tb_s"].value is None:
            raise table.error("hbm_tb_s", "is missing")
        patterns = "|".join(table.strings("match"))
        yield Gpu(
            table.get("name", str),
            table.get("vendor", str, "unknown"),
            rf"(?i)\b(?:{patterns})\b" if patterns else "",
            figures,
            table.strings("notes"),
        )


def _figure(gpu: Table, name: str, where: str) -> Figure:
    if name not in gpu.data:
        return Figure()
    given = gpu.data[name]
    if not isinstance(given, dict):
        return Figure(_number(gpu, name, given), "file", (where,))
    table = Table(given, "figure", f"{gpu.where}: {name}", _KINDS)
    value, measured = (
        _number(table, key, given[key]) if key in given else None for key in ("value", "measured")
    )
    return Figure(
        value,
        table.choice("status", _STATUS, "sourced"),
        table.strings("from"),
        measured,
        table.get("measured_from", str, ""),
        table.get("note", str, ""),
    )


def _number(table: Table, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise table.error(key, "must be a number above 0")
    return float(value)


def _architecture(data: dict[str, Any], where: str) -> Gpu:
    table = Table(data, "architecture", where, _KINDS)
    rates = table.child("max_achievable_tflops", "rates")
    figures = dict.fromkeys(_FIGURES, Figure())
    for key, name, factor in (
        ("mem_bw_gbps", "hbm_tb_s", 1000),
        ("memory_gb", "memory_gb", 1),
        ("num_cus", "units", 1),
    ):
        if data.get(key) is not None:
            figures[name] = Figure(_number(table, key, data[key]) / factor, "file", (where,))
    if figures["hbm_tb_s"].value is None:
        raise table.error("mem_bw_gbps", "is missing")
    for precision in PRECISIONS:
        for key in (f"matrix_{precision}", f"vector_{precision}"):
            if figures[precision].measured is None and rates.data.get(key) is not None:
                rate = _number(rates, key, rates.data[key])
                figures[precision] = Figure(None, "file", (where,), rate, where)
    return Gpu(table.get("name", str), "unknown", "", figures)
