"""The command that shows the peaks of GPUs, with what vouches for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trace_sql.command import FORMAT, show
from trace_sql.output import Column, Table

if TYPE_CHECKING:
    from trace_sql.hardware import Gpu


@click.command()
@click.argument("name", required=False)
@FORMAT
def hardware(name: str | None, output_format: str) -> None:
    """Show the peaks of GPUs, or of one with sources.

    NAME is a name of the list, part of one, or what a device calls itself. Rates are TFLOPS of
    dense products, bandwidth is TB/s.

    \b
    Example:
      trace-sql hardware "H100 SXM"
    """
    from trace_sql.hardware import find_gpu

    show(_list() if name is None else _one(find_gpu(name)), output_format)


def _list() -> list[Table]:
    from trace_sql.hardware import known_gpus, known_notes

    columns = (
        Column("gpu", "GPU"),
        Column("vendor", "Vendor"),
        Column("bf16_tflops", "BF16"),
        Column("fp8_tflops", "FP8"),
        Column("fp4_tflops", "FP4"),
        Column("hbm_tb_s", "TB/s"),
        Column("memory_gb", "GB"),
        Column("units", "SM/CU"),
        Column("bf16_measured_tflops", "BF16 measured"),
        Column("bf16_status", "BF16 is"),
    )
    rows = []
    for gpu in known_gpus():
        bf16 = gpu.figures["bf16"]
        values = [gpu.value(key) for key in ("bf16", "fp8", "fp4", "hbm_tb_s", "memory_gb")]
        units = _whole(gpu.value("units"))
        rows.append((gpu.name, gpu.vendor, *values, units, bf16.measured, _word(bf16.status)))
    return [Table("gpus", "", columns, rows), _notes(known_notes())]


def _one(gpu: Gpu) -> list[Table]:
    from trace_sql.hardware import known_sources

    columns = (
        Column("figure", "Figure"),
        Column("value", "Value"),
        Column("measured", "Measured"),
        Column("status", "Value is"),
        Column("sources", "Sources", wrap=True),
        Column("note", "Note", wrap=True),
    )
    known = {key: one for key, one in gpu.figures.items() if one.status != "unknown"}
    rows = [
        (
            key if key in _UNITS else f"{key}_tflops",
            one.value,
            one.measured,
            _word(one.status),
            ", ".join(dict.fromkeys([*one.sources, *filter(None, [one.measured_source])])) or None,
            one.note or None,
        )
        for key, one in known.items()
    ]
    named = {name for one in known.values() for name in (*one.sources, one.measured_source)}
    texts = [(key, text) for key, text in known_sources().items() if key in named]
    headings = (Column("source", "Source"), Column("text", "Where it is", wrap=True))
    figures = Table("figures", f"{gpu.name} ({gpu.vendor})", columns, rows)
    return [
        figures,
        *([_notes(gpu.notes)] if gpu.notes else []),
        Table("sources", "", headings, texts),
    ]


_UNITS = ("memory_gb", "units", "hbm_tb_s")


def _notes(notes: tuple[str, ...]) -> Table:
    return Table("notes", "", (Column("note", "To know", wrap=True),), [(note,) for note in notes])


def _word(status: str) -> str:
    return status.replace("_", " ")


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
