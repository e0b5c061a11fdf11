"""A model's config.json: its fields, flattened, and the names that it gives itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trace_sql.errors import BadInputError

_NESTED = ("text_config", "language_config", "llm_config")


class Config:
    """A config with its nested text configs laid over it: an inner field wins over an outer one."""

    def __init__(self, fields: Mapping[str, Any], where: str) -> None:
        self.where = where
        parts = tuple(_parts(fields, ""))
        self.parts = tuple(part for _, part in parts)
        self.fields: dict[str, Any] = {}
        for part in self.parts:
            self.fields.update(part)
        found = {
            (name, key): f"{path}{key}"
            for path, part in parts
            for key in ("model_type", "architectures")
            for name in _strings(part.get(key))
        }
        self.names = tuple((name, path) for (name, _), path in found.items())
        """What the config calls its model, each with the field that does: model type before
        architecture, because engines rewrite the latter; outer before nested."""
        self.model_types = tuple(name for name, key in found if key == "model_type")
        self.architectures = tuple(name for name, key in found if key == "architectures")

    @property
    def config(self) -> Config:
        return self

    @classmethod
    def read(cls, path: Path) -> Config:
        """Read a file; raises BadInputError where it is no JSON object."""
        try:
            fields = json.loads(path.read_bytes())
        except OSError as problem:
            raise BadInputError(f"{path}: cannot be read ({problem.strerror})") from None
        except json.JSONDecodeError as problem:
            raise BadInputError(
                f"{path}: is no JSON at byte {problem.pos} ({problem.msg}); "
                "give a model's config.json"
            ) from None
        except UnicodeDecodeError as problem:
            raise BadInputError(f"{path}: is no UTF-8 at byte {problem.start}") from None
        if not isinstance(fields, dict):
            raise BadInputError(f"{path}: is no JSON object; give the model's config.json")
        return cls(fields, str(path))

    @property
    def identities(self) -> tuple[str, ...]:
        """Return the names of the model without their fields, each once."""
        return tuple(dict.fromkeys(name for name, _ in self.names))

    def get(self, key: str) -> Any:
        """Return a field by its dotted key, None where it is absent or null."""
        value: Any = self.fields
        for step in key.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def number(self, *keys: str) -> int | None:
        """Return the first of `keys` that holds a whole number: some models keep lists there."""
        values = (self.get(key) for key in keys)
        return next((value for value in values if type(value) is int), None)

    def error(self, problem: str) -> BadInputError:
        return BadInputError(f"{self.where}: {problem}")


def _parts(fields: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, fields
    for key in _NESTED:
        if isinstance(fields.get(key), dict):
            yield from _parts(fields[key], f"{path}{key}.")


def _strings(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str) and item]
