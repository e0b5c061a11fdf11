"""What differs between traces, as rows of parameter tables and as rule lists for templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trace_sql.attention_rules import (
    KERNEL_FIELDS,
    KERNEL_TRAITS,
    OPERATOR_FIELDS,
    kernel_rules,
    operator_rules,
)
from trace_sql.errors import RefusedError, UsageError
from trace_sql.hits import Hits
from trace_sql.literal import sql_string
from trace_sql.model import Model, geometry_rows, summary_rows, visit_rows
from trace_sql.profile import Boundary, Profile, infer, load_profiles
from trace_sql.store import Settings


@dataclass(frozen=True)
class Parameters:
    """Rows for BASE_TABLES by table, the values that templates render, and `summary_rows`."""

    rows: Mapping[str, list[tuple[Any, ...]]]
    values: Mapping[str, Any]
    summary: list[tuple[str, str]]


def parameters(trace_id: str, settings: Settings) -> Parameters:
    """Turn a trace's settings into parameter rows and rule lists.

    Raises UsageError for an unknown profile or an offset without an anchor, BadInputError for a
    config that cannot be read, RefusedError where config and option give two layer counts.
    """
    model = None if settings.config is None else Model.from_config(settings.config)
    profile, reason = _profile(settings, model)
    boundaries, own = _boundaries(profile, settings), profile.resolved_boundaries
    named = _patterns([rule for rule, _ in boundaries])
    distinct = dict.fromkeys(pattern for pattern, *_ in named)
    patterns = {pattern: number for number, pattern in enumerate(distinct)}
    num_layers, source = _num_layers(settings, model)
    traces = [trace_id, *([settings.capture] if settings.capture else [])]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "trace_settings": [
            (
                trace,
                profile.name,
                reason,
                num_layers if trace == trace_id else None,
                source,
                model.depth if model and trace == trace_id else None,
                model.depth_varies if model and trace == trace_id else None,
                model.draft_layers if model and trace == trace_id else None,
                settings.anchor_offset if trace == trace_id else None,
                settings.device if trace == trace_id else None,
                settings.pid if trace == trace_id else None,
                settings.from_ns if trace == trace_id else None,
                settings.to_ns if trace == trace_id else None,
                settings.capture if trace == trace_id else None,
            )
            for trace in traces
        ],
        "boundary_rules": [
            (
                key,
                rule.name,
                rule.confidence,
                rule.hits.text,
                rule.hits.per_layer,
                rule.hits.extra,
                rule.first_block,
                rule.last,
                rule.hits.role,
                rule.hits.per_role,
                slots.index(rule.inner_slot) if rule.inner_slot else None,
                [rule.inner.count(slot) for slot in slots],
                rule.anchor_at,
                len(slots),
                list(slots),
                len(rule.lead_in) + sum(map(bool, (rule.entry, rule.anchor, rule.exit))),
                rule.entry is not None,
                rule.entry_ambiguous,
            )
            for key, (rule, slots) in enumerate(boundaries)
        ],
        "boundary_patterns": [(patterns[pattern], *row) for pattern, *row in named],
        "trace_rules": [
            (trace_id, key, key, settings.anchor_kernel is not None or rule in own)
            for key, (rule, _) in enumerate(boundaries)
        ],
        "trace_visits": [(trace_id, *row) for row in (visit_rows(model) if model else ())],
        "trace_layer_types": [
            (trace_id, layer.number, layer.type or None, layer.compress_ratio, list(layer.roles))
            for layer in (model.layers if model else ())
        ],
        "trace_geometry": [(trace_id, *row) for row in (geometry_rows(model) if model else ())],
        "trace_columns": [
            (trace_id, position, label, category)
            for position, (label, categories) in enumerate(profile.resolved_columns.items())
            for category in categories
        ],
    }
    return Parameters(
        rows,
        {
            "category_rules": profile.resolved_categories,
            "simplified_name": simplified_name(profile),
            "boundary_patterns": list(patterns),
            "prologue_patterns": profile.resolved_prologue_start,
            "prepare_patterns": profile.resolved_prepare_kernels,
            "operator_rules": operator_rules(),
            "operator_fields": OPERATOR_FIELDS,
            "kernel_rules": kernel_rules(),
            "kernel_fields": KERNEL_FIELDS,
            "kernel_traits": KERNEL_TRAITS,
            "has_capture": "true" if settings.capture else "false",
        },
        summary_rows(model) if model else [],
    )


def simplified_name(profile: Profile) -> str:
    """Return the SQL expression of the readable name of column `name`, 60 characters at most."""
    cases = " ".join(
        f"when regexp_matches(name, {sql_string(rule.pattern)}) "
        f"then regexp_replace(name, {sql_string(rule.pattern)}, {sql_string(rule.replace)})"
        for rule in profile.resolved_names
    )
    sql = f"case {cases} else name end" if cases else "name"
    for rule in profile.resolved_name_cleanups:
        sql = f"regexp_replace({sql}, {sql_string(rule.pattern)}, {sql_string(rule.replace)}, 'g')"
    return f"left({sql}, 60)"


def _profile(settings: Settings, model: Model | None) -> tuple[Profile, str]:
    profiles = load_profiles()
    if settings.profile is None:
        return infer(model)
    if settings.profile not in profiles:
        raise UsageError(f"no profile {settings.profile!r}; known: {', '.join(sorted(profiles))}")
    return profiles[settings.profile], "option"


def _num_layers(settings: Settings, model: Model | None) -> tuple[int | None, str | None]:
    told = settings.num_layers
    if told is not None and told < 1:
        raise UsageError(f"--num-layers {told}: a model has at least one layer")
    if told is not None and model is not None and told != model.num_layers:
        raise RefusedError(
            f"--num-layers {told}, but {settings.config_path or 'the config'} has "
            f"{model.num_layers}; give one of them"
        )
    if told is not None:
        return told, "option"
    return (model.num_layers, "config") if model else (None, None)


def _boundaries(profile: Profile, settings: Settings) -> list[tuple[Boundary, tuple[str, ...]]]:
    """The rules to try, each with the slots of a layer; a named anchor replaces the profile's."""
    slots = profile.resolved_slots or ("block",)
    if settings.anchor_kernel is None:
        if settings.anchor_offset is not None or settings.blocks_per_layer is not None:
            raise UsageError(
                "--anchor-offset and --blocks-per-layer describe --anchor-kernel; give that too"
            )
        rules = [(rule, slots) for rule in profile.resolved_boundaries]
        if settings.profile is None and settings.config is None:
            # Nothing says which model it is: every profile's own rules are tried.
            rules += [
                (rule, other.resolved_slots or slots)
                for other in load_profiles().values()
                for rule in other.boundaries
                if rule not in profile.resolved_boundaries
            ]
        return [(rule, names) for rule, names in rules if _applies(rule, names)]
    per_layer = settings.blocks_per_layer or len(slots)
    if per_layer < 1:
        raise UsageError(f"--blocks-per-layer {per_layer}: a layer has at least one block")
    if settings.anchor_offset is not None and settings.num_layers is None and not settings.config:
        raise UsageError("--anchor-offset cuts by counting: give --num-layers or --config too")
    if per_layer != len(slots):
        slots = tuple(f"block{number}" for number in range(per_layer))
    rule = Boundary(
        name=f"anchor {settings.anchor_kernel}",
        frameworks=(),
        vendors=(),
        confidence="option",
        source="--anchor-kernel",
        anchor=re.escape(settings.anchor_kernel).replace("\\ ", " "),
        hits=Hits(f"{per_layer}*N", per_layer, 0),
        first_block=0,
        last="block",
        anchor_at="begin",
        inner=(),
        inner_slot=None,
        entry=None,
        entry_ambiguous=False,
        exit=None,
        lead_in=(),
        examples={},
    )
    return [(rule, slots)]


def _applies(rule: Boundary, slots: tuple[str, ...]) -> bool:
    """Whether the formula gives a hit to each block and to the final norm, with these slots.

    A base's rule need not: its layers may have another number of blocks.
    """
    expected = (rule.last == "epilogue") - rule.first_block
    known = {*rule.inner, rule.inner_slot} - {None} <= set(slots)
    per_layer = len(slots) + len(rule.inner)
    return rule.hits.per_layer == per_layer and rule.hits.extra == expected and known


def _patterns(boundaries: list[Boundary]) -> list[tuple[str, int, str, int]]:
    """Return each pattern of the rules with the rule's key, its role and its position there."""
    patterns = []
    for key, rule in enumerate(boundaries):
        for role in ("entry", "anchor", "exit"):
            if pattern := getattr(rule, role):
                patterns.append((pattern, key, role, 0))
        for position, pattern in enumerate(reversed(rule.lead_in), start=1):
            patterns.append((pattern, key, "lead_in", position))
    return patterns
