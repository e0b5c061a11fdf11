"""What is known about a trace as a whole: the one row of facts.parquet."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trace_sql import __version__
from trace_sql.document import Document
from trace_sql.events import (
    DEVICE_CATEGORIES,
    FACT_COLUMNS,
    FLAT_FACTS,
    FLAT_LOSSES,
    SCHEMA_VERSION,
)
from trace_sql.safe_text import utf8
from trace_sql.source import Source, label

if TYPE_CHECKING:
    from trace_sql import engine

_LATE_NS = 4_102_444_800_000_000_000
"""The year 2100: later times are of another unit than microseconds."""
_MANY_FRACTIONS = 500
"""Of so many nanoseconds some are below 100, unless their zeros are missing."""
_OLD_DEVICE_CATEGORIES = ("Kernel", "Memcpy", "Memset")
"""How Kineto spelled the categories of device work before 2022 (kineto PR#674)."""


def make_facts(
    connection: engine.DuckDBPyConnection,
    events: str,
    source: Source,
    document: Document,
    *,
    trace_id: str,
    name: str,
) -> None:
    """Make the table FLAT_FACTS, one row of FACT_COLUMNS.

    `events` is the relation of the events, FLAT_LOSSES must be there; `source` and `document` have
    been read to their end.
    """
    metadata = document.metadata
    counted = _count_events(connection, events)
    rank, rank_source = _rank(metadata, source.path.name)
    devices = _device_properties(metadata)
    names = dict.fromkeys(str(device.get("name") or "").strip() for device in devices)
    losses, loss_lines = _losses(connection)
    facts: dict[str, Any] = {
        "trace_id": trace_id,
        "name": name,
        "path": label(source.path.absolute(), source.member),
        "file_bytes": source.file_bytes,
        "raw_bytes": source.raw_bytes,
        "content_hash": source.content_hash,
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "ingested_at": datetime.now(UTC).replace(tzinfo=None),
        "complete": document.complete,
        "n_repaired": losses["repaired"],
        "n_lost": losses["lost"],
        "base_time_ns": _whole(metadata.get("baseTimeNanoseconds"), 63),
        "rank": rank,
        "rank_source": rank_source,
        "world_size": _whole(_distributed(metadata).get("world_size")),
        "gpu": ", ".join(filter(None, names)) or None,
        "vendor": _vendor(metadata, devices, counted),
        "display_time_unit": _text(metadata.get("displayTimeUnit")),
        "warnings": _json([*_warnings(metadata, counted), *loss_lines]),
        "metadata": _json(metadata),
    }
    flags = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
    facts |= {flag: _flag(metadata.get(flag)) for flag in flags}
    facts |= {column: counted[column] for column in FACT_COLUMNS if column in counted}
    values = ", ".join(f"?::{kind} as {column}" for column, kind in FACT_COLUMNS.items())
    connection.execute(
        f"create table {FLAT_FACTS} as select {values}",
        [utf8(one) if isinstance(one := facts[column], str) else one for column in FACT_COLUMNS],
    )


def _count_events(connection: engine.DuckDBPyConnection, events: str) -> dict[str, Any]:
    """Return the facts that one query over the events gives, and evidence for the vendor."""
    device = f"cat in {(*DEVICE_CATEGORIES, *_OLD_DEVICE_CATEGORIES)}"
    runtime = "regexp_matches(cat, '(?i)runtime|driver')"
    slices = "ph in ('X', 'B', 'E', 'b', 'n', 'e')"
    # By kind first: there are few, and most questions are about some of them.
    cursor = connection.execute(
        f"""
        select
            coalesce(sum(n), 0)::BIGINT as n_events,
            coalesce(sum(n) filter (ph is null), 0)::BIGINT as n_odd,
            coalesce(sum(n) filter ({device}), 0)::BIGINT as n_device_events,
            coalesce(sum(n - timed) filter ({device}), 0)::BIGINT as n_without_time,
            min(begin_ns) filter ({slices} or ph in ('i', 'I', 'C')) as min_ts_ns,
            min(first_ns) filter ({slices}) as first_ns,
            max(end_ns) filter ({slices}) as max_end_ns,
            count(distinct device) filter ({device}) as n_devices,
            coalesce(sum(too_late) filter (ph in ('X', 'B', 'E')), 0)::BIGINT as n_too_late,
            coalesce(sum(small_fraction), 0)::BIGINT as n_small_fractions,
            coalesce(sum(odd_fraction), 0)::BIGINT as n_odd_fractions,
            coalesce(bool_or({runtime} and hip), false) as has_hip,
            coalesce(bool_or({runtime} and cuda), false) as has_cuda
        from (
            select
                ph,
                cat,
                device,
                count(*) as n,
                count(timed_ns) as timed,
                min(ts_ns) as begin_ns,
                min(timed_ns) as first_ns,
                max(ts_ns::HUGEINT + coalesce(dur_ns, 0)) as end_ns,
                count(*) filter (
                    ts_ns > {_LATE_NS} or (ts_ns is null and contains(extra, '"ts":'))
                ) as too_late,
                count(*) filter (ts_ns % 1000 between 1 and 99) as small_fraction,
                count(*) filter (ts_ns % 10 <> 0) as odd_fraction,
                bool_or(starts_with(name, 'hip')) as hip,
                bool_or(
                    case when starts_with(name, 'cu') then regexp_matches(name, '^cu(da)?[A-Z]') end
                ) as cuda
            from (
                select
                    *,
                    case when ts_ns <> 0 or coalesce(dur_ns, 0) <> 0 then ts_ns end as timed_ns
                from {events}
            )
            group by ph, cat, device
        )
        """
    )
    row = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description or ()), row or (), strict=True))


def _losses(connection: engine.DuckDBPyConnection) -> tuple[dict[str, int], list[str]]:
    """Return how many places were repaired and lost, and a line for each kind of them."""
    rows = connection.execute(
        f"""
        select
            repaired,
            kind,
            count(*),
            min_by(byte_offset, loss_no),
            min_by(line, loss_no),
            min_by(detail, loss_no)
        from {FLAT_LOSSES}
        group by repaired, kind
        order by repaired, min(loss_no)
        """
    ).fetchall()
    counts = {"repaired": 0, "lost": 0}
    lines = []
    for repaired, kind, count, offset, line, detail in rows:
        word = "repaired" if repaired else "lost"
        counts[word] += count
        places = "1 place" if count == 1 else f"{count} places"
        why = detail if kind in ("truncated", "damaged_stream") else "see the view losses"
        lines.append(f"{places} {word} ({kind}), the first at byte {offset}, line {line}: {why}")
    return counts, lines


def _distributed(metadata: dict[str, Any]) -> dict[str, Any]:
    info = metadata.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def _device_properties(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    devices = metadata.get("deviceProperties")
    listed = devices if isinstance(devices, list) else []
    return [device for device in listed if isinstance(device, dict)]


def _rank(metadata: dict[str, Any], file_name: str) -> tuple[int | None, str]:
    """Return the rank and where it is from: "header", "name" or "unknown".

    Names: SGLang `<id>-TP-<rank>-EP-..`, vLLM `.._rank<rank>.`, torchtitan `rank<rank>_trace`. A
    name with two different ranks says nothing, nor does a place in tensor parallelism behind the
    first pipeline stage. A replica counts its own ranks. What SGLang merges keeps the header of
    its first rank. The view `file_names` reads further names of a trace in the same way.
    """
    if file_name.startswith("merged-"):
        return None, "unknown"
    rank = _whole(_distributed(metadata).get("rank"))
    if rank is not None:
        return rank, "header"
    found = re.findall(r"(?:^|[^A-Za-z0-9])rank[-_]?(\d+)", file_name, re.IGNORECASE)
    if not re.search(r"-PP-0*[1-9]", file_name):
        found += re.findall(r"-TP-(\d+)(?=[-.]|$)", file_name)
    ranks = {int(text) for text in found if len(text) < 10}
    return (ranks.pop(), "name") if len(ranks) == 1 else (None, "unknown")


def _vendor(
    metadata: dict[str, Any], devices: list[dict[str, Any]], counted: dict[str, Any]
) -> str:
    keys = " ".join(metadata).lower()
    names = " ".join(str(device.get("name") or "") for device in devices).lower()
    if (
        counted["has_hip"]
        or re.search(r"roctracer|rocprofiler|hip_(runtime|driver)", keys)
        or re.search(r"\b(amd|instinct|radeon|gfx\d+)", names)
        or any(device.get("warpSize") == 64 for device in devices)
    ):
        return "amd"
    if (
        counted["has_cuda"]
        or re.search(r"cupti|cuda_(runtime|driver)", keys)
        or re.search(r"\b(nvidia|tesla|geforce|quadro)\b", names)
    ):
        return "nvidia"
    return "unknown"


def _warnings(metadata: dict[str, Any], counted: dict[str, Any]) -> list[str]:
    """Return the lines that Kineto put under WARNING and ERROR, then what the rows show."""
    lines: list[str] = []
    for key in ("WARNING", "ERROR"):
        value = metadata.get(key, [])
        lines += [str(line) for line in (value if isinstance(value, list) else [value])]
    if counted["n_odd"]:
        lines.append(f"{counted['n_odd']} elements of traceEvents are no events")
    if counted["n_without_time"]:
        lines.append(f"{counted['n_without_time']} device events have no time")
    if counted["n_too_late"]:
        lines.append(
            f"{counted['n_too_late']} times are beyond the year 2100 in microseconds, the unit of"
            " the format; do they count nanoseconds?"
        )
    # Kineto wrote 5 ns as .5 for some weeks of 2024 (kineto PR#896).
    if counted["n_odd_fractions"] >= _MANY_FRACTIONS and not counted["n_small_fractions"]:
        lines.append(
            "no time has a zero behind its point, so a profiler of early 2024 may have dropped them"
            " (5 ns written as .5); times are off by up to 0.9 us"
        )
    return lines


def _whole(value: object, bits: int = 31) -> int | None:
    """Return `value` if it is a whole number, or its text, of less than `bits` bits."""
    try:
        number = None if isinstance(value, (bool, float)) else int(str(value))
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1 << bits else None


def _flag(value: object) -> bool | None:
    """Return a profiler option; Kineto writes 1 and leaves options out that are off."""
    return None if value is None else str(value).lower() in ("1", "1.0", "true")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _json(value: object) -> str:
    """Return JSON text without lone surrogates, which Parquet could not hold."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
