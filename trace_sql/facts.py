"""What is known about a trace as a whole: the one row of facts.parquet."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trace_sql import __version__
from trace_sql.events import DEVICE_CATEGORIES, FACT_COLUMNS, FLAT_FACTS, SCHEMA_VERSION
from trace_sql.source import Source

if TYPE_CHECKING:
    from trace_sql import engine

_OLD_DEVICE_CATEGORIES = ("Kernel", "Memcpy", "Memset")
"""How Kineto spelled the categories of device work before 2022 (kineto PR#674)."""


def make_facts(
    connection: engine.DuckDBPyConnection,
    events: str,
    source: Source,
    metadata: dict[str, Any],
    *,
    trace_id: str,
    name: str,
) -> None:
    """Make the table FLAT_FACTS, one row of FACT_COLUMNS.

    `events` is the relation of the events; `source` must have been read to its end, and `metadata`
    holds the document's top-level keys but traceEvents.
    """
    counted = _count_events(connection, events)
    rank, rank_source = _rank(metadata, source.path.name)
    devices = _device_properties(metadata)
    names = dict.fromkeys(str(device.get("name") or "").strip() for device in devices)
    facts: dict[str, Any] = {
        "trace_id": trace_id,
        "name": name,
        "path": str(source.path.absolute()),
        "file_bytes": source.file_bytes,
        "raw_bytes": source.raw_bytes,
        "content_hash": source.content_hash,
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "ingested_at": datetime.now(UTC).replace(tzinfo=None),
        "complete": True,
        "base_time_ns": _whole(metadata.get("baseTimeNanoseconds"), 63),
        "rank": rank,
        "rank_source": rank_source,
        "world_size": _whole(_distributed(metadata).get("world_size")),
        "gpu": ", ".join(filter(None, names)) or None,
        "vendor": _vendor(metadata, devices, counted),
        "display_time_unit": _text(metadata.get("displayTimeUnit")),
        "warnings": _json(_warnings(metadata, counted)),
        "metadata": _json(metadata),
    }
    flags = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
    facts |= {flag: _flag(metadata.get(flag)) for flag in flags}
    facts |= {column: counted[column] for column in FACT_COLUMNS if column in counted}
    values = ", ".join(f"?::{kind} as {column}" for column, kind in FACT_COLUMNS.items())
    connection.execute(
        f"create table {FLAT_FACTS} as select {values}",
        [facts[column] for column in FACT_COLUMNS],
    )


def _count_events(connection: engine.DuckDBPyConnection, events: str) -> dict[str, Any]:
    """Return the facts that one query over the events gives, and evidence for the vendor."""
    device = f"cat in {(*DEVICE_CATEGORIES, *_OLD_DEVICE_CATEGORIES)}"
    runtime = "regexp_matches(cat, '(?i)runtime|driver')"
    # By category first: there are few, and most events are none of these.
    cursor = connection.execute(
        f"""
        select
            coalesce(sum(n), 0)::BIGINT as n_events,
            coalesce(sum(n) filter ({device}), 0)::BIGINT as n_device_events,
            coalesce(sum(untimed) filter ({device}), 0)::BIGINT as n_without_time,
            min(begin_ns) as min_ts_ns,
            max(end_ns) as max_end_ns,
            coalesce(
                len(list_distinct(flatten(list(devices) filter ({device})))), 0
            ) as n_devices,
            coalesce(bool_or({runtime} and hip), false) as has_hip,
            coalesce(bool_or({runtime} and cuda), false) as has_cuda
        from (
            select
                cat,
                count(*) as n,
                count(*) filter (
                    ts_ns is null or (ts_ns = 0 and coalesce(dur_ns, 0) = 0)
                ) as untimed,
                min(ts_ns) filter (ph in ('X', 'B', 'E', 'b', 'n', 'e', 'i', 'I', 'C')) as begin_ns,
                max(ts_ns::HUGEINT + coalesce(dur_ns, 0))
                    filter (ph in ('X', 'B', 'E', 'b', 'n', 'e')) as end_ns,
                list(distinct device) filter (device is not null) as devices,
                bool_or(starts_with(name, 'hip')) as hip,
                bool_or(
                    case when starts_with(name, 'cu') then regexp_matches(name, '^cu(da)?[A-Z]') end
                ) as cuda
            from {events}
            group by cat
        )
        """
    )
    row = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description or ()), row or (), strict=True))


def _distributed(metadata: dict[str, Any]) -> dict[str, Any]:
    info = metadata.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def _device_properties(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    devices = metadata.get("deviceProperties")
    listed = devices if isinstance(devices, list) else []
    return [device for device in listed if isinstance(device, dict)]


def _rank(metadata: dict[str, Any], file_name: str) -> tuple[int | None, str]:
    """Return the rank and where it is from: "header", "name" or "unknown".

    Names: SGLang `<id>-TP-<rank>-DP-..`, vLLM `.._rank<rank>.`, torchtitan `rank<rank>_trace`.
    A name with two different ranks says nothing.
    """
    rank = _whole(_distributed(metadata).get("rank"))
    if rank is not None:
        return rank, "header"
    found = re.findall(r"-TP-(\d{1,9})(?=[-.]|$)", file_name)
    found += re.findall(r"(?:^|[^A-Za-z0-9])rank[-_]?(\d{1,9})(?!\d)", file_name, re.IGNORECASE)
    ranks = {int(text) for text in found}
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
    if counted["n_without_time"]:
        lines.append(f"{counted['n_without_time']} device events have no time")
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
