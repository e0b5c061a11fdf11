"""What can be described without a trace: a model config, profiles, the schema of the views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from trace_sql.errors import UsageError
from trace_sql.output import Column, Table

if TYPE_CHECKING:
    from trace_sql.model import Layer, Model
    from trace_sql.rules import Profile
    from trace_sql.views import View


def model_tables(config: Path, output_format: str) -> list[Table]:
    """Return the summary of a config with the profile that fits it, and its layer types.

    For people, layers whose types repeat are folded into one row. JSON and CSV have one row a
    layer, and the layers first, because CSV holds one table only.
    """
    from trace_sql.model import Model, summary_rows

    model = Model.from_config(config)
    rows = [*summary_rows(model), ("profile", f"{model.profile.name} ({model.profile_reason})")]
    summary = Table("model", "Model", (Column("field", "Field"), _value()), rows)
    ratios = Column("compress_ratio", "c_r")
    if output_format in ("json", "csv"):
        each = (Column("layer_no", "L"), ratios, Column("layer_type", "Type"))
        layers = Table(
            "layers",
            "Layers",
            (*each, Column("roles", "Roles")),
            [(one.number, one.compress_ratio, one.type, list(one.roles)) for one in model.layers],
        )
        return [layers, summary]
    folded = [_folded_row(model.layers[start:end], period) for start, end, period in _runs(model)]
    columns = (
        Column("layers", "L"),
        Column("n_layers", "#"),
        ratios,
        Column("layer_type", "Types, in turn", wrap=True),
    )
    return [summary, Table("layers", "Layers", columns, folded)]


_LONGEST_PERIOD = 12
"""Of layer types that are looked for; known models repeat after eight layers at most."""


def _runs(model: Model) -> Iterator[tuple[int, int, int]]:
    """Return (first layer, layer behind the last, period): stretches whose types repeat.

    A stretch holds its period twice at least, or is one type. The longest one comes first.
    """
    kinds = [(layer.type, layer.compress_ratio) for layer in model.layers]
    start = 0
    while start < len(kinds):
        best = (start + 1, -1)
        for period in range(1, _LONGEST_PERIOD + 1):
            end = start + period
            while end < len(kinds) and kinds[end] == kinds[end - period]:
                end += 1
            if end - start >= 2 * period:
                best = max(best, (end, -period))
        yield start, best[0], -best[1]
        start = best[0]


def _folded_row(layers: Sequence[Layer], period: int) -> tuple[str, int, str | None, str]:
    first, last = layers[0].number, layers[-1].number
    kinds = [(one.type or "-", one.compress_ratio) for one in layers[:period]]
    turns = [(kind, len(list(same))) for kind, same in groupby(kinds)]
    ratios = dict.fromkeys(str(ratio) for (_, ratio), _ in turns if ratio is not None)
    return (
        f"{first}" if first == last else f"{first}-{last}",
        len(layers),
        ", ".join(ratios) or None,
        ", ".join(kind if n == 1 else f"{n} x {kind}" for (kind, _), n in turns),
    )


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
        ("fits when", "; ".join(rule.because for rule in profile.conditions)),
        ("slots", ", ".join(profile.resolved_slots)),
        ("layer roles", _roles(profile)),
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


def _roles(profile: Profile) -> str:
    """Return the labels that a layer can have, part by part."""
    layout = profile.resolved_layout
    by_part = [
        dict.fromkeys(label for rule in layout.roles if rule.part == part for label in rule.labels)
        for part in layout.parts
    ]
    return " + ".join("/".join(labels) for labels in by_part)


def _first_sentence(view: View) -> str:
    return view.contract.summary.split(". ")[0].rstrip(".")


def _value() -> Column:
    return Column("value", "Value", wrap=True)
