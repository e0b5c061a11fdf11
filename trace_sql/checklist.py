"""The whole analysis of a trace in one Markdown document, in the order of a review."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trace_sql.database import Database
from trace_sql.errors import TraceSqlError
from trace_sql.evidence import coverage, file_warnings, warnings
from trace_sql.flow import Place, flow_table, layer_row, model_summary
from trace_sql.loop_tables import loop_tables
from trace_sql.output import Column, Table, render
from trace_sql.reports import (
    chosen_pass,
    column_shares,
    layer_tables,
    pass_table,
    perfetto_tables,
)
from trace_sql.safe_text import escaped, readable
from trace_sql.store import Settings


def checklist(
    db: Database, trace_id: str, pass_no: int | None, layer: int | None, settings: Settings
) -> str:
    """Return the nine points of a review: metadata to one-line summary.

    The kernels are those of `layer`, by default of a typical layer of each of the two types that
    take most of the pass. Raises what `chosen_pass` raises.
    """
    number, why = chosen_pass(db, trace_id, pass_no, settings.phase)
    typical = representatives(db, trace_id, number)
    places = [Place(trace_id, number, 0, row["layer_no"]) for row in typical[:2]]
    shown = dict(zip(places, typical, strict=False))
    if layer is not None:
        place = Place(trace_id, number, 0, layer)
        shown = {place: layer_row(db, place)}
    flows = [f"### {_of_layer(row)}\n\n{_titled(flow_table(db, at))}" for at, row in shown.items()]
    (trace,) = db.query(_TRACE, [trace_id]).dicts()
    layers, clusters = layer_tables(db, trace_id, number)
    loops = [
        f"### {_text(table.title)}\n\n{_titled(table)}"
        for table in loop_tables(db, trace_id, number, settings.phase)
    ]
    ranges = perfetto_tables(db, trace_id, number, [], settings.phase)
    sections = [
        ("Trace", _titled(_metadata(db, trace, settings))),
        ("Model", "\n".join(map(_titled, model_summary(trace_id, settings))) or _NO_CONFIG),
        ("Forward passes", _titled(pass_table(db, trace_id, settings.phase))),
        ("Chosen pass", f"Pass {number}: {_text(why)}.\n"),
        (f"Layers of pass {number}", _titled(layers)),
        ("Layer clusters", "\n".join((_titled(clusters), *loops))),
        ("Compute flow", "\n".join(flows)),
        (
            "Perfetto time ranges",
            "\n".join(f"{_text(table.title)}:\n\n{_titled(table)}" for table in ranges),
        ),
        ("Summary", _summary(db, trace_id, number, typical[0]) + "\n"),
    ]
    parts = [f"# {_text(trace['name'])}\n"]
    parts += [f"## {count}. {title}\n\n{body}" for count, (title, body) in enumerate(sections, 1)]
    found = [*file_warnings(db, trace_id), *warnings(db, trace_id)]
    doubts = "".join(f"\n**Warning:** {_text(doubt)}\n" for doubt in found)
    parts.append(f"---\n\n{_text(coverage(db, trace_id))}\n{doubts}")
    return "\n".join(parts)


def representatives(db: Database, trace_id: str, pass_no: int) -> list[dict[str, Any]]:
    """Return a typical layer of each type, the type that takes most of the pass first.

    Layer 0, which often starts with another kernel, is typical only where it is alone. Raises
    TraceSqlError for a pass without a complete layer.
    """
    rows = db.query(
        """
        select l.layer_type, l.layer_no, l.wall_ms, c.avg_wall_ms, c.n_layers,
            coalesce(100 * c.avg_busy_ms / nullif(c.avg_wall_ms, 0), 0) as busy_pct,
            coalesce(c.wall_share_pct, 0) as wall_share_pct
        from layer_table as l
        join cluster_table as c using (trace_id, pass_no, layer_type)
        where trace_id = ? and pass_no = ? and l.complete and l.loop_no = 0
        order by wall_share_pct desc, l.layer_no = 0, abs(l.wall_ms - c.avg_wall_ms), l.layer_no
        """,
        [trace_id, pass_no],
    ).dicts()
    if not rows:
        raise TraceSqlError(f"pass {pass_no} has no complete layer; choose another with --pass")
    return list({row["layer_type"]: row for row in reversed(rows)}.values())[::-1]


def _of_layer(row: dict[str, Any]) -> str:
    return f"Layer {row['layer_no']}, {_text(row['layer_type'])}, {row['wall_ms']:.3f} ms"


def _summary(db: Database, trace_id: str, pass_no: int, typical: dict[str, Any]) -> str:
    """Return one line: the layer type that takes most, and what in it to look at next."""
    shares = column_shares(db, trace_id, pass_no).rows
    label, share = next((one[1], one[2] or 0) for one in shares if one[0] == typical["layer_type"])
    idle = "" if typical["busy_pct"] >= 50 else "the time without a kernel (launch bound), then "
    return (
        f"Bottleneck: {_text(typical['layer_type'])}, {typical['wall_share_pct']:.1f} % of the"
        f" layers' wall time ({typical['n_layers']} layers, {typical['avg_wall_ms']:.3f} ms each,"
        f" kernels run in {typical['busy_pct']:.1f} % of it); likely next target: {idle}"
        f"{_text(label)}, {share:.1f} % of their kernel time."
    )


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none; raises TraceSqlError where the place cannot be written."""
    # A link stays one, and what is no file (a pipe, /dev/stdout) has nothing to replace.
    target = Path(os.path.realpath(path))
    # Not longer than its name, which may be as long as a name can be.
    work = target.with_name(f".{os.getpid()}.{os.urandom(4).hex()}")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        try:
            work.write_text(text, encoding="utf-8")
            work.replace(target)
        finally:
            work.unlink(missing_ok=True)
    except OSError as error:
        raise TraceSqlError(f"{path}: cannot be written ({error.strerror})") from None


_TRACE = "from traces where trace_id = ?"
_NO_CONFIG = "No config.json was given; --config adds the architecture and the layer types.\n"


def _metadata(db: Database, row: dict[str, Any], settings: Settings) -> Table:
    (verdict,) = db.query("from trace_verdicts where trace_id = ?", [row["trace_id"]]).dicts()
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
        *(("warning", warning) for warning in json.loads(row["warnings"] or "[]")),
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
    return escaped(readable(text))
