"""One layer's kernels: grouped text, compute flow, JSON, and two layers compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trace_sql.database import Database
from trace_sql.errors import TraceSqlError
from trace_sql.output import Column, Table, json_text, render
from trace_sql.plan import make_plan
from trace_sql.safe_text import readable
from trace_sql.settings import Settings

HOTTEST = 15
"""Kernels that the text form lists."""


@dataclass(frozen=True)
class Place:
    """A visit of a layer: trace, pass, loop and layer number."""

    trace_id: str
    pass_no: int
    loop_no: int
    layer_no: int

    @property
    def values(self) -> list[Any]:
        """What a query over `_AT` binds."""
        return [self.trace_id, self.pass_no, self.loop_no, self.layer_no]

    @property
    def of_loop(self) -> str:
        """Words for a later visit of the layer; none for the first."""
        return f" in loop {self.loop_no}" if self.loop_no else ""


_AT = "trace_id = ? and pass_no = ? and loop_no = ? and layer_no = ?"


def kernel_report(
    db: Database,
    primary: Place,
    comparison: Place | None,
    output_format: str,
    settings: Settings,
) -> str:
    """Return what `trace-sql kernels` prints.

    `output_format` is text, compute-flow or one of output.FORMATS; JSON is one document. A
    summary of the model heads the compute flow. Raises TraceSqlError for a layer that the pass
    does not have.
    """
    places = [primary, *([comparison] if comparison else [])]
    rows = [layer_row(db, place) for place in places]
    if output_format == "json":
        if comparison is None:
            return json_text(layer_json(db, primary))
        return json_text(comparison_json(db, primary, comparison))
    differing = [difference_table(db, primary, comparison)] if comparison else []
    if output_format == "text":
        groups = [group_table(db, place) for place in places]
        hottest = [flow_table(db, place, HOTTEST) for place in places]
        heads = [
            f"Layer {row['layer_no']}{primary.of_loop} of pass {row['pass_no']}:"
            f" {row['layer_type']},"
            f" wall {row['wall_ms']:.3f} ms, busy {row['busy_ms']:.3f} ms,"
            f" sum {row['sum_dur_ms']:.3f} ms, {row['n_activities']} activities"
            for row in rows
        ]
        body = render([*differing, *groups, *hottest], "table")
        return "\n".join([*map(readable, heads), "", body])
    if output_format == "compute-flow":
        flows = [flow_table(db, place) for place in places]
        return render([*model_summary(primary.trace_id, settings), *flows, *differing], "table")
    tables = differing or [flow_table(db, primary)]
    return render(tables, output_format)


def model_summary(trace_id: str, settings: Settings) -> list[Table]:
    """Return the architecture as a table; none without a config."""
    if settings.config is None:
        return []
    columns = (Column("field", "Model"), Column("value", "Value", wrap=True))
    return [Table("model", "", columns, make_plan(trace_id, settings).summary)]


def layer_row(db: Database, place: Place) -> dict[str, Any]:
    """Return the layer's measures; raises TraceSqlError where the pass has no such layer."""
    rows = db.query(f"from layer_table where {_AT}", place.values).dicts()
    if not rows:
        first, last, loops = db.query(
            "select min(layer_no), max(layer_no), max(loop_no) + 1 from layers"
            " where trace_id = ? and pass_no = ?",
            [place.trace_id, place.pass_no],
        ).rows[0]
        raise TraceSqlError(
            f"pass {place.pass_no} has no layer {place.layer_no}{place.of_loop};"
            f" it has {first} to {last} in {loops} loop{'s' if loops > 1 else ''}"
        )
    return rows[0]


def flow_table(db: Database, place: Place, limit: int | None = None) -> Table:
    """Return the activities of a layer, longest first."""
    columns = (
        Column("rank_no", "#"),
        Column("slot", "Half"),
        Column("category", "Category"),
        Column("simplified_name", "Simplified Name", wrap=True),
        Column("dur_us", "dur(us)", 3),
        Column("share_pct", "%", 1),
        Column("ts_rel_ms", "ts_rel(ms)", 3),
        Column("input_dims", "Input Dims", wrap=True),
    )
    chosen = ", ".join(column.key for column in columns)
    sql = f"select {chosen} from compute_flow where {_AT} order by rank_no"
    found = db.query(sql + (f" limit {limit:d}" if limit else ""), place.values).rows
    rows = [(*row, shapes(input_dims)) for *row, input_dims in found]
    title = "Longest kernels" if limit else "Compute flow"
    return Table(
        "kernels",
        f"{title} of layer {place.layer_no}{place.of_loop}, pass {place.pass_no}",
        columns,
        rows,
    )


def shapes(input_dims: str | None) -> str | None:
    """Return recorded shapes as people write them, 888x64, without those of scalars."""
    if input_dims is None:
        return None
    try:
        dims = json.loads(input_dims)
    except ValueError:
        return input_dims
    return ", ".join(_shape(one) for one in dims if one) if isinstance(dims, list) else input_dims


def _shape(dims: Any) -> str:
    if not isinstance(dims, list):
        return str(dims)
    if any(isinstance(one, list) for one in dims):
        return f"({', '.join(map(_shape, dims))})"
    return "x".join(map(str, dims))


def group_table(db: Database, place: Place) -> Table:
    """Return the layer's time by category."""
    rows = db.query(
        "select category, count(*), sum(dur_ns) / 1e3,"
        " 100.0 * sum(dur_ns) / nullif(sum(sum(dur_ns)) over (), 0)"
        f" from compute_flow where {_AT} group by category order by 3 desc, category",
        place.values,
    ).rows
    columns = (
        Column("category", "Category"),
        Column("n_activities", "Count"),
        Column("sum_dur_us", "Sum(us)", 3),
        Column("share_pct", "%", 1),
    )
    title = f"Categories of layer {place.layer_no}{place.of_loop}, pass {place.pass_no}"
    return Table("categories", title, columns, rows)


def difference_table(db: Database, primary: Place, comparison: Place) -> Table:
    """Return kernel by kernel how two layers differ, kernels of only one first."""
    columns = (
        Column("found_in", "Only in"),
        Column("category", "Category"),
        Column("simplified_name", "Simplified Name", wrap=True),
        Column("n_primary", f"# L{primary.layer_no}"),
        Column("n_comparison", f"# L{comparison.layer_no}"),
        Column("primary_us", f"us L{primary.layer_no}", 3),
        Column("comparison_us", f"us L{comparison.layer_no}", 3),
        Column("change_us", f"L{comparison.layer_no}-L{primary.layer_no}(us)", 3),
    )
    owner = {"primary": f"L{primary.layer_no}", "comparison": f"L{comparison.layer_no}"}
    rows = [
        tuple({**pair, "found_in": owner.get(pair["found_in"])}[column.key] for column in columns)
        for pair in _pairs(db, primary, comparison)
    ]
    title = f"Layer {primary.layer_no} against layer {comparison.layer_no}"
    return Table("kernel_diff", title, columns, rows)


def layer_json(db: Database, place: Place) -> dict[str, Any]:
    """Return a layer and its activities, longest first, as one JSON object."""
    row = layer_row(db, place)
    kernels = db.query(
        "select rank_no, flow_no, slot, category, simplified_name, name, dur_us, share_pct,"
        f" ts_rel_ms, start_s, input_dims, event_id, stream from compute_flow where {_AT}"
        " order by rank_no",
        place.values,
    ).dicts()
    return {**row, "kernels": kernels}


def comparison_json(db: Database, primary: Place, comparison: Place) -> dict[str, Any]:
    """Return both layers and their kernel difference as one JSON object."""
    pairs = _pairs(db, primary, comparison)
    return {
        "primary": layer_json(db, primary),
        "comparison": layer_json(db, comparison),
        "kernel_diff": {
            "only_primary": [pair for pair in pairs if pair["found_in"] == "primary"],
            "only_comparison": [pair for pair in pairs if pair["found_in"] == "comparison"],
            "both": [pair for pair in pairs if pair["found_in"] == "both"],
        },
    }


def _pairs(db: Database, primary: Place, comparison: Place) -> list[dict[str, Any]]:
    return db.query(
        f"""
        with
            a as (from layer_kernel_groups where {_AT}),
            b as (from layer_kernel_groups where {_AT})
        select
            case when b.name is null then 'primary' when a.name is null then 'comparison'
                else 'both' end as found_in,
            coalesce(a.category, b.category) as category,
            coalesce(a.simplified_name, b.simplified_name) as simplified_name,
            coalesce(a.name, b.name) as name,
            coalesce(a.n_activities, 0) as n_primary,
            coalesce(b.n_activities, 0) as n_comparison,
            coalesce(a.sum_dur_us, 0) as primary_us,
            coalesce(b.sum_dur_us, 0) as comparison_us,
            coalesce(b.sum_dur_us, 0) - coalesce(a.sum_dur_us, 0) as change_us
        from a full join b on a.name = b.name
        order by found_in = 'both', abs(change_us) desc, name
        """,
        [*primary.values, *comparison.values],
    ).dicts()
