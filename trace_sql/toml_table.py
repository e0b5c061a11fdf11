"""A table of a TOML file that knows where it stands, so that complaints name file and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from trace_sql.errors import UsageError

_T = TypeVar("_T")


class Table:
    """Values by key, of the right type or a UsageError.

    `kinds` names the keys of each kind of table; a kind that is not there takes any key.
    """

    def __init__(self, data: object, kind: str, where: str, kinds: Mapping[str, str]) -> None:
        self.where, self.kinds = where, kinds
        if not isinstance(data, dict):
            raise self.error("", "must be a table")
        self.data: dict[str, Any] = data
        known = kinds[kind].split() if kind in kinds else list(data)
        for key in data:
            if key not in known:
                raise self.error(key, f"is no key; known here: {', '.join(known)}")

    def error(self, key: str, problem: str) -> UsageError:
        return UsageError(f"{self.where}: {key} {problem}")

    def get(self, key: str, kind: type[_T], default: _T | None = None) -> _T:
        value = self.data.get(key, default)
        if value is None:
            raise self.error(key, "is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"must be of type {kind.__name__}")
        return value

    def strings(self, key: str, required: bool = False) -> tuple[str, ...]:
        value = self.data.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            raise self.error(key, "must be a list of strings")
        if required and not values:
            raise self.error(key, "is missing or empty")
        return tuple(values)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        value = self.get(key, str, default)
        if value not in choices:
            raise self.error(key, f"is {value!r}; choose one of {', '.join(choices)}")
        return value

    def child(self, key: str, kind: str) -> Table:
        return Table(self.data.get(key, {}), kind, f"{self.where}: {key}", self.kinds)

    def children(self, key: str) -> Iterator[Table]:
        for index, item in enumerate(self.get(key, list, [])):
            yield Table(item, key, f"{self.where}: {key}[{index}]", self.kinds)
