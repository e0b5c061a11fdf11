"""The whole analysis of a trace in one Markdown document, in the order of a review."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trace_sql.database import Database
from trace_sql.errors import TraceSqlError
from trace_sql.flow import Place, flow_table, layer_row, model_summary
from trace_sql.output import Column, Table, clean, render
from trace_sql.reports import (
    chosen_pass,
    coverage,
    layer_tables,
    pass_table,
    perfetto_tables,
)
from trace_sql.store import Settings


def checklist(
    db: Database, trace_id: str, pass_no: int | None, layer: int | None, settings: Settings
) -> str:
    """Return the nine points of a review: metadata to one-line summary.

    `layer` defaults to the median one of the type that takes most of the pass. Raises what
    `chosen_pass` raises.
    """
    number, why = chosen_pass(db, trace_id, pass_no, settings.phase)
    row = representative(db, trace_id, number)
    place = Place(trace_id, number, 0, row["layer_no"] if layer is None else layer)
    layer_row(db, place)
    name = db.query("select name from traces where trace_id = ?", [trace_id]).rows[0][0]
    layers, clusters = layer_tables(db, trace_id, number)
    flow = flow_table(db, place)
    sections = [
        ("Trace", _titled(_metadata(db, trace_id, settings))),
        ("Model", "".join(map(_titled, model_summary(settings.config))) or _NO_CONFIG),
        ("Forward passes", _titled(pass_table(db, trace_id))),
        ("Chosen pass", f"Pass {number}: {_text(why)}.\n"),
        ("Layers", _titled(layers)),
        ("Layer clusters", _titled(clusters)),
        (f"Compute flow of layer {place.layer_no}", _titled(flow)),
        (
            "Perfetto time ranges",
            "\n".join(map(_titled, perfetto_tables(db, trace_id, number, []))),
        ),
        ("Summary", summary(db, trace_id, number) + "\n"),
    ]
    parts = [f"# {_text(name)}\n"]
    parts += [f"## {count}. {title}\n\n{body}" for count, (title, body) in enumerate(sections, 1)]
    parts.append(f"---\n\n{_text(coverage(db, trace_id))}\n")
    return "\n".join(parts)


def representative(db: Database, trace_id: str, pass_no: int) -> dict[str, Any]:
    """Return type and number of a typical layer of the type that takes most of the pass."""
    rows = db.query(
        """
        select l.layer_type, l.layer_no, c.avg_wall_ms, c.wall_share_pct, c.n_layers
        from layer_table as l
        join cluster_table as c using (trace_id, pass_no, layer_type)
        where trace_id = ? and pass_no = ? and l.complete and l.loop_no = 0
        order by c.wall_share_pct desc, abs(l.wall_ms - c.avg_wall_ms), l.layer_no
        limit 1
        """,
        [trace_id, pass_no],
    ).dicts()
    if not rows:
        raise TraceSqlError(f"pass {pass_no} has no complete layer; choose another with --pass")
    return rows[0]


def summary(db: Database, trace_id: str, pass_no: int) -> str:
    """Return one line: the layer type that takes most, and what in it to look at next."""
    row = representative(db, trace_id, pass_no)
    label, share = db.query(
        "select label, share_pct from cluster_column_table where trace_id = ? and pass_no = ?"
        " and layer_type = ? order by share_pct desc limit 1",
        [trace_id, pass_no, row["layer_type"]],
    ).rows[0]
    return (
        f"Layers of type {_text(row['layer_type'])} take {row['wall_share_pct']:.1f} % of the"
        f" layers' wall time ({row['n_layers']} layers, {row['avg_wall_ms']:.3f} ms each);"
        f" the largest part of their kernel time is {_text(label)} ({share:.1f} %)."
    )


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none; raises TraceSqlError where the place cannot be written."""
    work = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        work.write_text(text, encoding="utf-8")
        work.replace(path)
    except OSError as error:
        work.unlink(missing_ok=True)
        raise TraceSqlError(f"{path}: cannot be written ({error.strerror})") from None


_NO_CONFIG = "No config.json was given; --config adds the architecture and the layer types.\n"


def _metadata(db: Database, trace_id: str, settings: Settings) -> Table:
    row = db.query("from traces where trace_id = ?", [trace_id]).dicts()[0]
    verdict = db.query("from trace_verdicts where trace_id = ?", [trace_id]).dicts()[0]
    rank = "unknown" if row["rank"] is None else f"{row['rank']} (from {row['rank_source']})"
    rows = [
        ("trace", row["path"]),
        ("model config", settings.config_path or "not given"),
        ("GPU", row["gpu"] or f"not named in the trace ({row['vendor']})"),
        ("rank", rank),
        ("world size", row["world_size"] or "unknown"),
        ("TP / EP", _parallelism(settings)),
        ("events", row["n_events"]),
        ("device activities", row["n_device_events"]),
        ("span", f"{row['span_ns'] / 1e6:.3f} ms"),
        ("whole file read", row["complete"]),
        ("profile", f"{verdict['profile']} ({verdict['profile_source']})"),
        ("layers", f"{verdict['n_layers']} (from {verdict['n_layers_source']})"),
    ]
    return Table("trace", "", (Column("field", "Field"), Column("value", "Value")), rows)


def _parallelism(settings: Settings) -> str:
    """What was said with tags; a trace of one rank does not tell how ranks divide the model."""
    told = {key.upper(): value for key, value in (settings.tags or {}).items()}
    known = [f"{key}={told[key]}" for key in ("TP", "EP", "PP", "DP") if key in told]
    return ", ".join(known) or "not in the trace; say it with ingest --tag tp=8"


def _titled(table: Table) -> str:
    return render([Table(table.key, "", table.columns, table.rows)], "markdown")


def _text(text: str) -> str:
    return clean(text).replace("<", "&lt;").replace("|", "\\|")
