"""What a rule is: categories, simplified names and boundaries, and the profile that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trace_sql.hits import Hits
from trace_sql.layout import IdentityRule, Layout, merged

KERNELS = "kernels"
"""The profile whose rules every other profile ends with."""

OTHER = "other"
"""The category of a kernel that no rule knows."""


@dataclass(frozen=True)
class CategoryRule:
    """Kernels whose raw name matches `pattern` have category `name`, unless an earlier rule won."""

    name: str
    pattern: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class NameRule:
    """A rewrite of a kernel name in RE2's syntax, with (raw, simplified) examples."""

    pattern: str
    replace: str
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Boundary:
    """One family of kernels that bounds the blocks of a layer, and how to count it."""

    name: str
    frameworks: tuple[str, ...]
    vendors: tuple[str, ...]
    confidence: str
    source: str
    anchor: str
    hits: Hits
    first_block: int
    """Index within the pass of the block that hit 0 opens."""
    last: str
    """What the last hit is: "epilogue" closes the last block, "block" opens it."""
    anchor_at: str
    """Whether an anchor is the first kernel of the block behind it ("begin") or the last one of
    the block before it ("end")."""
    inner: tuple[str, ...]
    """Slots that hold one more anchor, which bounds nothing, in every layer; a slot may recur."""
    inner_slot: str | None
    """Slot of a layer of the formula's role in which the role's hits follow the opening one."""
    entry: str | None
    """Opens block 0."""
    entry_ambiguous: bool
    """Whether `entry` also matches norms inside layers (q/k, q_a/kv_a): then only the first
    match after the start of a pass counts."""
    exit: str | None
    lead_in: tuple[str, ...]
    examples: Mapping[str, tuple[str, ...]]
    """Real names by key: anchor, entry, exit, lead_in, and `not` for lookalikes."""


@dataclass(frozen=True)
class Profile:
    """One profile file with its bases; `resolved_*` is what applies, own rules first."""

    name: str
    title: str
    confidence: str
    source: str
    bases: tuple[Profile, ...] = field(repr=False)
    architectures: tuple[str, ...]
    model_types: tuple[str, ...]
    conditions: tuple[IdentityRule, ...]
    slots: tuple[str, ...]
    layout: Layout
    columns: Mapping[str, tuple[str, ...]]
    prologue_start: tuple[str, ...]
    prologue_examples: tuple[str, ...]
    prepare_kernels: tuple[str, ...]
    prepare_examples: tuple[str, ...]
    boundaries: tuple[Boundary, ...]
    categories: tuple[CategoryRule, ...]
    names: tuple[NameRule, ...]
    name_cleanups: tuple[NameRule, ...]

    def lineage(self) -> tuple[Profile, ...]:
        """Return this profile, then its bases depth first, each once, the universal one last."""
        found: dict[str, Profile] = {self.name: self}
        for base in self.bases:
            for profile in base.lineage():
                found.setdefault(profile.name, profile)
        return tuple(sorted(found.values(), key=lambda profile: profile.name == KERNELS))

    @property
    def resolved_boundaries(self) -> tuple[Boundary, ...]:
        return tuple(rule for profile in self.lineage() for rule in profile.boundaries)

    @property
    def resolved_categories(self) -> tuple[CategoryRule, ...]:
        """Ordered: the first rule that matches wins, no match is `other`."""
        return tuple(rule for profile in self.lineage() for rule in profile.categories)

    @property
    def resolved_names(self) -> tuple[NameRule, ...]:
        """Ordered: the first rule that matches replaces the name."""
        return tuple(rule for profile in self.lineage() for rule in profile.names)

    @property
    def resolved_name_cleanups(self) -> tuple[NameRule, ...]:
        """Ordered: each is applied everywhere, after `resolved_names`."""
        return tuple(rule for profile in self.lineage() for rule in profile.name_cleanups)

    @property
    def resolved_prepare_kernels(self) -> tuple[str, ...]:
        return tuple(rule for profile in self.lineage() for rule in profile.prepare_kernels)

    @property
    def resolved_prologue_start(self) -> tuple[str, ...]:
        return tuple(rule for profile in self.lineage() for rule in profile.prologue_start)

    @property
    def resolved_slots(self) -> tuple[str, ...]:
        return next((profile.slots for profile in self.lineage() if profile.slots), ())

    @property
    def resolved_layout(self) -> Layout:
        return merged(profile.layout for profile in self.lineage())

    @property
    def resolved_columns(self) -> Mapping[str, tuple[str, ...]]:
        return next((profile.columns for profile in self.lineage() if profile.columns), {})
