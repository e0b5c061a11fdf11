"""The one schema of a flattened trace: what the Parquet files of a store hold."""

from __future__ import annotations

SCHEMA_VERSION = 2
"""Part of every store path, so that a file written by an older schema is never read."""

EVENT_COLUMNS: dict[str, str] = {
    "trace_id": "VARCHAR",
    "ph": "VARCHAR",
    "cat": "VARCHAR",
    "name": "VARCHAR",
    "pid": "VARCHAR",
    "tid": "VARCHAR",
    "ts_ns": "BIGINT",
    "dur_ns": "BIGINT",
    "id": "VARCHAR",
    "device": "BIGINT",
    "stream": "BIGINT",
    "correlation": "BIGINT",
    "external_id": "BIGINT",
    "python_id": "BIGINT",
    "python_parent_id": "BIGINT",
    "args": "VARCHAR",
    "extra": "VARCHAR",
}
"""Columns of events.parquet, in order, with DuckDB types.

Rows stand in file order: the row number is `event_id`, the 0-based index in `traceEvents`.
`extra` holds as JSON text every top-level key without a column, and every value that its
column could not hold exactly, so that an event can always be rebuilt.
"""

FACT_COLUMNS: dict[str, str] = {
    "trace_id": "VARCHAR",
    "name": "VARCHAR",
    "path": "VARCHAR",
    "file_bytes": "BIGINT",
    "raw_bytes": "BIGINT",
    "content_hash": "VARCHAR",
    "schema_version": "INTEGER",
    "tool_version": "VARCHAR",
    "ingested_at": "TIMESTAMP",
    "complete": "BOOLEAN",
    "n_repaired": "BIGINT",
    "n_lost": "BIGINT",
    "n_events": "BIGINT",
    "n_device_events": "BIGINT",
    "n_without_time": "BIGINT",
    "min_ts_ns": "BIGINT",
    "first_ns": "BIGINT",
    "max_end_ns": "BIGINT",
    "base_time_ns": "BIGINT",
    "rank": "INTEGER",
    "rank_source": "VARCHAR",
    "world_size": "INTEGER",
    "gpu": "VARCHAR",
    "n_devices": "INTEGER",
    "vendor": "VARCHAR",
    "with_stack": "BOOLEAN",
    "record_shapes": "BOOLEAN",
    "profile_memory": "BOOLEAN",
    "with_flops": "BOOLEAN",
    "with_modules": "BOOLEAN",
    "display_time_unit": "VARCHAR",
    "warnings": "VARCHAR",
    "metadata": "VARCHAR",
}
"""Columns of facts.parquet, one row a trace, in order, with DuckDB types.

`min_ts_ns` is what the Perfetto UI shows as zero: the smallest time of any slice, instant or
counter. `first_ns` is the smallest time of a slice, but for those with zeros alone, which is how
profilers write what they do not know. `warnings` is a JSON list of strings, `metadata` the JSON
text of every top-level key of the document but `traceEvents`.
"""

LOSS_COLUMNS: dict[str, str] = {
    "trace_id": "VARCHAR",
    "loss_no": "BIGINT",
    "kind": "VARCHAR",
    "repaired": "BOOLEAN",
    "event_id": "BIGINT",
    "byte_offset": "BIGINT",
    "line": "BIGINT",
    "n_bytes": "BIGINT",
    "detail": "VARCHAR",
}
"""Columns of losses.parquet, one row a place that could not be read as it stands, in order."""

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""Event categories that are work on a device; annotations and sync rows are not."""

FLAT_EVENTS = "flat_events"
FLAT_FACTS = "flat_facts"
FLAT_LOSSES = "flat_losses"
"""What the Parquet files of a small trace are called while they are still tables. The `rowid` of
FLAT_EVENTS is the event_id."""
