"""What a profile says of configs: which key counts the layers, what each layer is, how it loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trace_sql.formula import Formula, parse
from trace_sql.loops import NORMS, LoopRule
from trace_sql.roles import RoleRule
from trace_sql.toml_table import Table


@dataclass(frozen=True)
class IdentityRule:
    """A condition on a config's fields that makes a profile its own.

    `names` limits it to configs that name one of them; without, it is for configs whose names no
    profile claims. `because` is the sentence that says why.
    """

    names: tuple[str, ...]
    where: Formula
    because: str


@dataclass(frozen=True)
class Layout:
    """The layers of a family by config keys.

    Of the formulas under `count`, `drafts` and `tail` the first whose keys a config has counts.
    """

    count: tuple[Formula, ...]
    drafts: tuple[Formula, ...]
    tail: tuple[Formula, ...]
    """Entries that a per-layer list may have beyond the layers."""
    agree: tuple[tuple[str, tuple[Formula, ...]], ...]
    """(key, what it may hold beside N layers): anything else is a contradiction."""
    parts: tuple[str, ...]
    """The parts of a layer's type, in order."""
    roles: tuple[RoleRule, ...]
    ratios: tuple[tuple[str, int], ...]
    """KV compression ratio by role."""
    loops: LoopRule | None


def merged(layouts: Iterable[Layout]) -> Layout:
    """Return what applies of a profile's layout and its bases', own first.

    Role rules follow each other; of anything else the first that says it counts.
    """
    all_of = tuple(layouts)
    return Layout(
        count=next((one.count for one in all_of if one.count), ()),
        drafts=next((one.drafts for one in all_of if one.drafts), ()),
        tail=next((one.tail for one in all_of if one.tail), ()),
        agree=next((one.agree for one in all_of if one.agree), ()),
        parts=next((one.parts for one in all_of if one.parts), ()),
        roles=tuple(rule for one in all_of for rule in one.roles),
        ratios=next((one.ratios for one in all_of if one.ratios), ()),
        loops=next((one.loops for one in all_of if one.loops), None),
    )


def read_layout(table: Table) -> Layout:
    """Read the [layer], [[role]] and [loops] of a profile."""
    layer = table.child("layer", "layer")
    agree = layer.child("agree", "layer.agree")
    ratios = layer.child("compress_ratio", "layer.compress_ratio")
    return Layout(
        count=_formulas(layer, "count"),
        drafts=_formulas(layer, "drafts"),
        tail=_formulas(layer, "tail"),
        agree=tuple((key, _formulas(agree, key)) for key in agree.data),
        parts=layer.strings("parts"),
        roles=tuple(_role(rule) for rule in table.children("role")),
        ratios=tuple((role, ratios.get(role, int)) for role in ratios.data),
        loops=_loops(table.child("loops", "loops")) if "loops" in table.data else None,
    )


def read_identity_rule(table: Table) -> IdentityRule:
    where = _formula(table, "where")
    if where is None:
        raise table.error("where", "is missing: say what makes a config this profile's")
    return IdentityRule(table.strings("names"), where, table.get("because", str))


def _role(table: Table) -> RoleRule:
    values = table.child("values", "role.values")
    label = table.get("label", str) if "label" in table.data else None
    keys = table.strings("key")
    if (label is None) == (not keys):
        raise table.error("label", "or key: give one of them, a label or a list's key with values")
    if keys and not values.data:
        raise table.error("values", "is missing: a label for each entry of the list")
    return RoleRule(
        part=table.get("part", str),
        label=label,
        where=_formula(table, "where"),
        keys=keys,
        values=tuple((entry, values.get(entry, str)) for entry in values.data),
        others=table.get("others", str) if "others" in table.data else None,
    )


def _loops(table: Table) -> LoopRule:
    return LoopRule(
        prelude=_formulas(table, "prelude"),
        coda=_formulas(table, "coda"),
        core=_formulas(table, "core"),
        runs=_formulas(table, "runs"),
        depth=_formulas(table, "depth"),
        varies=_formula(table, "varies"),
        norm=table.choice("norm", NORMS),
        norm_once=_formula(table, "norm_once"),
    )


def _formulas(table: Table, key: str) -> tuple[Formula, ...]:
    return tuple(_parsed(table, key, text) for text in table.strings(key))


def _formula(table: Table, key: str) -> Formula | None:
    return _parsed(table, key, table.get(key, str)) if key in table.data else None


def _parsed(table: Table, key: str, text: str) -> Formula:
    try:
        return parse(text)
    except ValueError as problem:
        raise table.error(key, f"is no formula: {problem}") from None
