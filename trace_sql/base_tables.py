"""The relations that exist before any view: what a session provides, with their columns."""

from __future__ import annotations

from trace_sql.events import EVENT_COLUMNS, FACT_COLUMNS, LOSS_COLUMNS

HARDWARE = ("hardware_peaks", "gpu_choice")
"""The peaks of GPUs, and which one counts."""
ON_DEMAND = (*HARDWARE, "trace_pairs")
"""Tables that are made when a question first needs them: no trace determines them."""

BASE_TABLES: dict[str, dict[str, str]] = {
    "raw_events": {"event_id": "BIGINT", **EVENT_COLUMNS},
    "raw_facts": FACT_COLUMNS,
    "raw_losses": LOSS_COLUMNS,
    "raw_settings": {
        "trace_id": "VARCHAR",
        "run": "VARCHAR",
        "tags": "MAP(VARCHAR, VARCHAR)",
        "config_path": "VARCHAR",
        "paths": "VARCHAR[]",
    },
    "trace_settings": {
        "trace_id": "VARCHAR",
        "profile": "VARCHAR",
        "profile_source": "VARCHAR",
        "num_layers": "BIGINT",
        "num_layers_source": "VARCHAR",
        "depth": "BIGINT",
        "depth_varies": "BOOLEAN",
        "draft_layers": "BIGINT",
        "anchor_offset": "BIGINT",
        "device": "BIGINT",
        "pid": "VARCHAR",
        "from_ns": "BIGINT",
        "to_ns": "BIGINT",
        "capture_trace_id": "VARCHAR",
    },
    "boundary_rules": {
        "rule_key": "INTEGER",
        "rule_name": "VARCHAR",
        "confidence": "VARCHAR",
        "hits": "VARCHAR",
        "hits_per_layer": "BIGINT",
        "hits_extra": "BIGINT",
        "first_block": "BIGINT",
        "last_is": "VARCHAR",
        "role": "VARCHAR",
        "hits_per_role": "BIGINT",
        "inner_slot_no": "BIGINT",
        "inner_hits": "BIGINT[]",
        "anchor_at": "VARCHAR",
        "blocks_per_layer": "BIGINT",
        "slots": "VARCHAR[]",
        "n_patterns": "BIGINT",
        "has_entry": "BOOLEAN",
        "entry_ambiguous": "BOOLEAN",
    },
    "boundary_patterns": {
        "pattern_no": "BIGINT",
        "rule_key": "INTEGER",
        "role": "VARCHAR",
        "position": "INTEGER",
    },
    "trace_rules": {
        "trace_id": "VARCHAR",
        "rule_key": "INTEGER",
        "priority": "INTEGER",
        "is_own": "BOOLEAN",
    },
    "trace_visits": {
        "trace_id": "VARCHAR",
        "part": "VARCHAR",
        "position": "BIGINT",
        "layer_no": "BIGINT",
        "loop_no": "BIGINT",
        "loops": "BIGINT",
        "norm_behind": "BOOLEAN",
        "last_only": "BOOLEAN",
    },
    "trace_layer_types": {
        "trace_id": "VARCHAR",
        "layer_no": "BIGINT",
        "layer_type": "VARCHAR",
        "compress_ratio": "BIGINT",
        "roles": "VARCHAR[]",
    },
    "trace_geometry": {
        "trace_id": "VARCHAR",
        "layer_no": "BIGINT",
        "h_q": "DOUBLE",
        "h_kv": "DOUBLE",
        "d_qk": "DOUBLE",
        "d_v": "DOUBLE",
        "window_size": "DOUBLE",
        "top_k": "DOUBLE",
        "block_size": "DOUBLE",
        "latent": "BOOLEAN",
        "wide_d_qk": "DOUBLE",
        "wide_d_v": "DOUBLE",
        "dtype": "VARCHAR",
    },
    "trace_columns": {
        "trace_id": "VARCHAR",
        "position": "BIGINT",
        "label": "VARCHAR",
        "category": "VARCHAR",
    },
    # TFLOPS are of dense products; terabytes and gigabytes are 1e12 and 1e9 bytes.
    "hardware_peaks": {
        "gpu": "VARCHAR",
        "vendor": "VARCHAR",
        "match": "VARCHAR",
        "precision": "VARCHAR",
        "datasheet_tflops": "DOUBLE",
        "measured_tflops": "DOUBLE",
        "hbm_tb_s": "DOUBLE",
        "units": "BIGINT",
        "memory_gb": "DOUBLE",
        "status": "VARCHAR",
        "source": "VARCHAR",
        "note": "VARCHAR",
    },
    "gpu_choice": {"gpu": "VARCHAR", "gpu_source": "VARCHAR", "peak": "VARCHAR"},
    # A trace and the one that it is compared with.
    "trace_pairs": {"trace_id": "VARCHAR", "other_trace_id": "VARCHAR"},
}
"""Columns and DuckDB types by relation. `raw_*` come from the store, ON_DEMAND from the session,
the others are the rows of `parameters`, which say what differs between traces."""
