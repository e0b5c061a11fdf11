"""What can be described without a trace: a model config, profiles, the schema of the views."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trace_sql.errors import UsageError
from trace_sql.output import Column, Table

if TYPE_CHECKING:
    from trace_sql.views import View


def model_tables(config: Path) -> list[Table]:
    """Return the summary of a config, its layer types and the profile that fits it."""
    from trace_sql.model import Model, summary_rows
    from trace_sql.profile import infer

    model = Model.from_config(config)
    profile, reason = infer(model)
    rows = [*summary_rows(model), ("profile", f"{profile.name} ({reason})")]
    summary = Table("model", "Model", (Column("field", "Field"), _value()), rows)
    kinds = Table(
        "layers",
        "Layers",
        (Column("layer_no", "L"), Column("compress_ratio", "c_r"), Column("layer_type", "Type")),
        [(layer.number, layer.compress_ratio, layer.type) for layer in model.layers],
    )
    return [summary, kinds]


def profile_tables(name: str | None) -> list[Table]:
    """Return all profiles, or one in full; raises UsageError for an unknown name."""
    from trace_sql.profile import load_profiles

    profiles = load_profiles()
    if name is None:
        columns = (
            Column("name", "Profile"),
            Column("title", "Title", wrap=True),
            Column("confidence", "Confidence"),
            Column("n_boundaries", "Boundaries"),
            Column("model_types", "Models", wrap=True),
        )
        rows = [
            (p.name, p.title, p.confidence, len(p.resolved_boundaries), ", ".join(p.model_types))
            for p in profiles.values()
            if p.resolved_slots
        ]
        return [Table("profiles", "", columns, rows)]
    if name not in profiles:
        raise UsageError(f"no profile {name!r}; known: {', '.join(sorted(profiles))}")
    profile = profiles[name]
    facts = [
        ("name", profile.name),
        ("title", profile.title),
        ("confidence", profile.confidence),
        ("source", profile.source),
        ("bases", ", ".join(base.name for base in profile.lineage()[1:])),
        ("architectures", ", ".join(profile.architectures)),
        ("model types", ", ".join(profile.model_types)),
        ("slots", ", ".join(profile.resolved_slots)),
        ("category rules", str(len(profile.resolved_categories))),
    ]
    boundaries = [
        (rule.name, rule.confidence, rule.hits.text, rule.anchor, rule.entry, rule.last)
        for rule in profile.resolved_boundaries
    ]
    labels = [(label, ", ".join(kinds)) for label, kinds in profile.resolved_columns.items()]
    return [
        Table("profile", "Profile", (Column("field", "Field"), _value()), facts),
        Table(
            "boundaries",
            "Boundary rules, in order of preference",
            (
                Column("rule", "Rule", wrap=True),
                Column("confidence", "Confidence"),
                Column("hits", "Per pass"),
                Column("anchor", "Anchor", wrap=True),
                Column("entry", "Entry", wrap=True),
                Column("last", "Last hit"),
            ),
            boundaries,
        ),
        Table("columns", "Report columns", (Column("label", "Column"), _value()), labels),
    ]


def schema_tables(name: str | None) -> list[Table]:
    """Return the public views, or the columns of one; raises UsageError for an unknown name."""
    from trace_sql.database import public_views

    views = {view.name: view for view in public_views()}
    if name is None:
        columns = (
            Column("view", "View"),
            Column("layer", "Layer"),
            Column("row", "One row is", wrap=True),
            Column("grain", "Grain", wrap=True),
        )
        rows = [
            (view.name, view.layer, _first_sentence(view), ", ".join(view.contract.grain))
            for view in views.values()
        ]
        return [Table("views", "", columns, rows)]
    if name not in views:
        raise UsageError(f"no view {name!r}; known: {', '.join(sorted(views))}")
    contract = views[name].contract
    columns = (
        Column("column", "Column"),
        Column("type", "Type"),
        Column("unit", "Unit"),
        Column("meaning", "Meaning", wrap=True),
    )
    rows = [(c.name, c.type, c.unit, c.meaning) for c in contract.columns]
    return [Table("columns", f"{name}: {contract.summary}", columns, rows)]


def _first_sentence(view: View) -> str:
    return view.contract.summary.split(". ")[0].rstrip(".")


def _value() -> Column:
    return Column("value", "Value", wrap=True)
