"""Profiles: what a model's kernels mean, read from `profiles/*.toml`.

A profile is data. It names the models it is for, the kernels that bound their layers, and rules
that give a kernel its category and a readable name. Rules of `base` profiles follow a profile's
own, and the universal ones of `kernels.toml` come last. `profiles/README.md` lists every key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from trace_sql.config import Config
from trace_sql.errors import UsageError
from trace_sql.hits import Hits, parse_hits
from trace_sql.layout import read_identity_rule, read_layout
from trace_sql.resources import data_folder
from trace_sql.rules import (
    KERNELS,
    OTHER,
    Boundary,
    CategoryRule,
    NameRule,
    Profile,
)
from trace_sql.toml_table import Table

__all__ = [
    "KERNELS",
    "OTHER",
    "Boundary",
    "CategoryRule",
    "Hits",
    "NameRule",
    "Profile",
    "infer",
    "load_profiles",
    "parse_hits",
]

_CONFIDENCE = ("golden", "trace", "source", "words")
_LAST = ("epilogue", "block")
_SIDES = ("begin", "end")
_KEYS = {
    "profile": "title base confidence source identity layer role loops columns prologue prepare "
    "boundary category name name_cleanup",
    "identity": "architectures model_types when",
    "when": "names where because",
    "layer": "slots count drafts tail agree parts compress_ratio",
    "role": "part label where key values others",
    "loops": "prelude core coda runs depth varies norm norm_once",
    "prologue": "start examples",
    "prepare": "kernels examples",
    "boundary": "name frameworks vendors confidence source entry entry_ambiguous anchor hits "
    "first_block last anchor_at inner inner_slot exit lead_in examples",
    "boundary.examples": "entry anchor exit lead_in not",
    "category": "name pattern examples",
    "name": "pattern replace examples",
    "name_cleanup": "pattern replace examples",
}
"""The keys of each kind of table; a kind that is not here takes any key."""


class Configured(Protocol):
    """What has a config: a model, or a config itself."""

    @property
    def config(self) -> Config: ...


def load_profiles(folder: Path | None = None) -> Mapping[str, Profile]:
    """Return every profile of `folder` (the shipped ones by default) by name, the file's stem.

    Raises UsageError that names file and key: a key that does not exist, a value of the wrong
    type, a pattern that RE2 refuses, a formula that is none, a rule without examples, a base that
    is missing or circular, a column of an unknown category, a model that two profiles claim.
    """
    return _load(folder or data_folder("profiles"))


def infer(
    model: Configured | None, profiles: Mapping[str, Profile] | None = None
) -> tuple[Profile, str]:
    """Return the profile for a model and, in a few words, why.

    Names decide first, the outer ones before those of a nested text config, because some wrappers
    share the inner model type; a condition may turn a name into another profile's. Then the fields
    of configs that no profile claims by name, if they fit one; last comes `generic_addnorm`. No
    config gets `generic`.
    """
    found = profiles or load_profiles()
    if model is None:
        return found["generic"], "no config"
    config = model.config
    conditions = [(profile, rule) for profile in found.values() for rule in profile.conditions]
    for name, key in config.names:
        for profile, rule in conditions:
            if name in rule.names and rule.where.holds(config.get):
                return profile, rule.because
        for profile in found.values():
            if name in (*profile.model_types, *profile.architectures):
                return profile, f"{key} {'is' if key.endswith('type') else 'has'} {name}"
    fitting = {
        profile.name: (profile, rule.because)
        for profile, rule in conditions
        if not rule.names and rule.where.holds(config.get)
    }
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    named = " / ".join(name for name, _ in config.names) or "a config without a name"
    doubt = f", and its fields fit {' and '.join(fitting)}" if fitting else ""
    return found["generic_addnorm"], f"no profile claims {named}{doubt}"


@cache
def _load(folder: Path) -> Mapping[str, Profile]:
    tables = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    if KERNELS not in tables:
        raise UsageError(f"{folder} has no {KERNELS}.toml; every profile ends with its rules")
    done: dict[str, Profile] = {}

    def build(name: str, path: tuple[str, ...]) -> Profile:
        if name in done:
            return done[name]
        table = tables[name]
        names = table.strings("base")
        for base in names:
            if base not in tables:
                raise table.error("base", f"is {base!r}, which is no profile in this folder")
            if base in (*path, name):
                raise table.error("base", f"is circular: {' > '.join((*path, name, base))}")
        if name != KERNELS:
            names = (*names, KERNELS)
        bases = tuple(build(base, (*path, name)) for base in names)
        done[name] = _profile(name, table, bases)
        return done[name]

    for name in tables:
        build(name, ())
    _check_patterns(done)
    _check_references(done)
    return done


def _read(path: Path) -> Table:
    try:
        return Table(tomllib.loads(path.read_text("utf-8")), "profile", path.name, _KEYS)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path} is no TOML: {problem}") from None


def _check_patterns(profiles: Mapping[str, Profile]) -> None:
    """Refuse what DuckDB's own regular expressions refuse."""
    from trace_sql import engine

    patterns = [
        (f"{profile.name}.toml: {where}", pattern)
        for profile in profiles.values()
        for where, pattern in _patterns(profile)
    ]
    test = "SELECT regexp_matches('', pattern) FROM (SELECT unnest(?) AS pattern)"
    with engine.Workspace() as workspace:
        connection = workspace.connection
        try:
            connection.execute(test, [[pattern for _, pattern in patterns]]).fetchall()
        except engine.Error:
            for where, pattern in patterns:
                try:
                    connection.execute(test, [[pattern]]).fetchall()
                except engine.Error as problem:
                    cause = str(problem).splitlines()[0].removeprefix("Invalid Input Error: ")
                    raise UsageError(f"{where} {pattern!r} is no RE2 pattern: {cause}") from None


def _patterns(profile: Profile) -> Iterator[tuple[str, str]]:
    for pattern in profile.prologue_start:
        yield "prologue.start", pattern
    for pattern in profile.prepare_kernels:
        yield "prepare.kernels", pattern
    for boundary in profile.boundaries:
        for key in ("anchor", "entry", "exit"):
            if getattr(boundary, key):
                yield f"boundary {boundary.name}.{key}", getattr(boundary, key)
        for pattern in boundary.lead_in:
            yield f"boundary {boundary.name}.lead_in", pattern
    for index, rule in enumerate(profile.categories):
        yield f"category[{index}].pattern", rule.pattern
    for index, name_rule in enumerate(profile.names):
        yield f"name[{index}].pattern", name_rule.pattern
    for index, name_rule in enumerate(profile.name_cleanups):
        yield f"name_cleanup[{index}].pattern", name_rule.pattern


def _check_references(profiles: Mapping[str, Profile]) -> None:
    owners: dict[str, str] = {}
    for profile in profiles.values():
        known = {rule.name for rule in profile.resolved_categories} | {OTHER}
        for label, categories in profile.columns.items():
            for category in set(categories) - known:
                raise UsageError(
                    f"{profile.name}.toml: columns.{label} has {category!r}, "
                    "which no category rule gives"
                )
        labels = {label for rule in profile.resolved_layout.roles for label in rule.labels}
        for role in profile.layout.roles:
            if role.part not in profile.resolved_layout.parts:
                raise UsageError(f"{profile.name}.toml: role: layer.parts has no {role.part!r}")
        for boundary in profile.boundaries:
            if boundary.hits.role is not None and boundary.hits.role not in labels:
                raise UsageError(
                    f"{profile.name}.toml: boundary {boundary.name}: hits counts "
                    f"{boundary.hits.role}, which no role rule gives"
                )
        for identity in (*profile.architectures, *profile.model_types):
            if owners.setdefault(identity, profile.name) != profile.name:
                raise UsageError(
                    f"{profile.name}.toml: identity {identity!r} is claimed by "
                    f"{owners[identity]}.toml too"
                )


def _boundary(table: Table) -> Boundary:
    examples = table.child("examples", "boundary.examples")
    rules = {key: table.strings(key) for key in ("anchor", "entry", "exit", "lead_in")}
    for key, patterns in rules.items():
        if patterns and not examples.strings(key):
            raise examples.error(key, "is missing: give real kernel names that the rule matches")
    examples.strings("not", required=True)
    try:
        hits = parse_hits(table.get("hits", str))
    except ValueError as problem:
        raise table.error("hits", f"is no formula in N: {problem}") from None
    if "inner_slot" in table.data and hits.role is None:
        raise table.error("inner_slot", "needs a role in hits, as 2*N + 3*PLE")
    last = table.choice("last", _LAST)
    if rules["exit"] and last != "block":
        raise table.error("exit", 'needs last = "block"')
    first_block = table.get("first_block", int)
    if first_block < 0:
        raise table.error("first_block", "must be 0 or more")
    if first_block > 0 and not rules["entry"]:
        raise table.error("entry", "is missing: something must open the blocks before hit 0")
    return Boundary(
        name=table.get("name", str),
        frameworks=table.strings("frameworks", required=True),
        vendors=table.strings("vendors", required=True),
        confidence=table.choice("confidence", _CONFIDENCE),
        source=table.get("source", str),
        anchor=table.get("anchor", str),
        hits=hits,
        first_block=first_block,
        last=last,
        anchor_at=table.choice("anchor_at", _SIDES, "begin"),
        inner=table.strings("inner"),
        inner_slot=table.get("inner_slot", str) if hits.role else None,
        entry=rules["entry"][0] if rules["entry"] else None,
        entry_ambiguous=table.get("entry_ambiguous", bool, False),
        exit=rules["exit"][0] if rules["exit"] else None,
        lead_in=rules["lead_in"],
        examples={key: examples.strings(key) for key in (*rules, "not")},
    )


def _name_rule(table: Table) -> NameRule:
    pairs = table.get("examples", list, [])
    if not pairs:
        raise table.error("examples", "is missing: give [raw, simplified] pairs")
    for pair in pairs:
        if not (isinstance(pair, list) and [type(item) for item in pair] == [str, str]):
            raise table.error("examples", "must be a list of [raw, simplified] pairs")
    return NameRule(
        table.get("pattern", str),
        table.get("replace", str),
        tuple((raw, simple) for raw, simple in pairs),
    )


def _profile(name: str, table: Table, bases: tuple[Profile, ...]) -> Profile:
    identity, prologue = table.child("identity", "identity"), table.child("prologue", "prologue")
    columns = table.child("columns", "columns")
    if prologue.strings("start"):
        prologue.strings("examples", required=True)
    prepare = table.child("prepare", "prepare")
    if prepare.strings("kernels"):
        prepare.strings("examples", required=True)
    return Profile(
        name=name,
        title=table.get("title", str),
        confidence=table.choice("confidence", _CONFIDENCE),
        source=table.get("source", str),
        bases=bases,
        architectures=identity.strings("architectures"),
        model_types=identity.strings("model_types"),
        conditions=tuple(read_identity_rule(rule) for rule in identity.children("when")),
        slots=table.child("layer", "layer").strings("slots"),
        layout=read_layout(table),
        columns={label: columns.strings(label, required=True) for label in columns.data},
        prologue_start=prologue.strings("start"),
        prologue_examples=prologue.strings("examples"),
        prepare_kernels=prepare.strings("kernels"),
        prepare_examples=prepare.strings("examples"),
        boundaries=tuple(_boundary(rule) for rule in table.children("boundary")),
        categories=tuple(
            CategoryRule(
                rule.get("name", str),
                rule.get("pattern", str),
                rule.strings("examples", required=True),
            )
            for rule in table.children("category")
        ),
        names=tuple(_name_rule(rule) for rule in table.children("name")),
        name_cleanups=tuple(_name_rule(rule) for rule in table.children("name_cleanup")),
    )
