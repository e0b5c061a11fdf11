"""What each layer of a config is: rules that give a layer its role labels, one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trace_sql.config import Config
from trace_sql.formula import Formula


@dataclass(frozen=True)
class RoleRule:
    """One label for the layers where `where` holds, or labels by the entry of a per-layer list.

    `values` pairs entries of the list (or letters of the string) under the first present key of
    `keys` with labels; `others` is the label of any other entry, "*" standing for the entry, an
    empty one says nothing.
    """

    part: str
    label: str | None
    where: Formula | None
    keys: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    others: str | None

    @property
    def labels(self) -> tuple[str, ...]:
        """Return every label that it can give, but for those made of an entry."""
        return tuple(label for _, label in self.values) if self.label is None else (self.label,)


def layer_roles(
    rules: Sequence[RoleRule], parts: Sequence[str], config: Config, count: int, tail: int
) -> list[tuple[str, ...]]:
    """Return the labels of each of `count` layers, in the order of `parts`.

    A part gives a layer one label at most, that of its first rule that fits; parts never replace
    each other. A per-layer list may be longer than the layers by `tail` entries, those of drafts.
    Raises BadInputError where a list has another length, has an entry that its rule does not know,
    or names a layer that the model does not have.
    """
    labels: list[list[str]] = [[] for _ in range(count)]
    for part in parts:
        # Only a rule that some layer needs is read: another family's may misread the same key.
        open_layers = list(range(count))
        for rule in rules:
            if rule.part == part and open_layers:
                labeller = _labeller(rule, config, count, tail)
                found = {i: label for i in open_layers if (label := labeller(i)) is not None}
                for i, label in found.items():
                    labels[i] += [label] if label else []
                open_layers = [i for i in open_layers if i not in found]
    return [tuple(of_layer) for of_layer in labels]


def _labeller(rule: RoleRule, config: Config, count: int, tail: int) -> Callable[[int], str | None]:
    """Return what gives a layer the label of this rule."""
    label, where = rule.label, rule.where
    if where is not None:
        for listed in where.per_layer:
            _check_length(config, listed, count, tail)
        for listed, layer in where.strangers(config.get, count + tail):
            raise config.error(f"{listed} names layer {layer}, but the model has {count} layers")
    if label is not None:
        return lambda i: label if where is None or where.holds(config.get, i, count) else None
    key = next((key for key in rule.keys if isinstance(config.get(key), list | str)), None)
    if key is None:
        return lambda i: None
    _check_length(config, key, count, tail)
    entries, labels, others = config.get(key), dict(rule.values), rule.others

    def by_entry(i: int) -> str | None:
        if where is not None and not where.holds(config.get, i, count):
            return None
        entry = str(entries[i])
        if entry not in labels and others is None:
            raise config.error(
                f"{key}[{i}] is {entry!r}, which is unknown here; known: {', '.join(labels)}"
            )
        return labels.get(entry, (others or "").replace("*", entry.upper()))

    return by_entry


def _check_length(config: Config, key: str, count: int, tail: int) -> None:
    entries = config.get(key)
    if isinstance(entries, list | str) and not count <= len(entries) <= count + tail:
        drafts = f" and at most {tail} of drafts" if tail else ""
        raise config.error(f"{key} has {len(entries)} entries for {count} layers{drafts}")
