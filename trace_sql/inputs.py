"""Which trace files the paths of a command line mean, and what those traces are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trace_sql.errors import UsageError

_SUFFIXES = (".gz", ".json", ".trace", ".pt")


@dataclass(frozen=True)
class Skipped:
    path: Path
    reason: str


@dataclass(frozen=True)
class Expanded:
    files: list[Path]
    skipped: list[Skipped]


def trace_name(path: Path) -> str:
    """Return the file name without .json, .json.gz and the profilers' .trace and .pt before it."""
    name = path.name
    for suffix in _SUFFIXES:
        shorter = name.removesuffix(suffix)
        name = shorter or name
    return name


def expand(paths: Iterable[Path]) -> Expanded:
    """Return the trace files that `paths` name, folders searched at any depth.

    A file named itself is taken whatever its name; in folders *.json and *.json.gz are taken
    and every other file is listed with the reason it was left out. Each file comes once, those
    of a folder sorted. Raises UsageError for a path that does not exist.
    """
    files: dict[Path, None] = {}
    skipped: list[Skipped] = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder; check the path")
        if not path.is_dir():
            files[path.absolute()] = None
            continue
        for inner in sorted(path.rglob("*")):
            if inner.is_dir():
                continue
            reason = _reason_to_skip(inner)
            if reason:
                skipped.append(Skipped(inner.absolute(), reason))
            else:
                files[inner.absolute()] = None
    return Expanded(list(files), skipped)


def _reason_to_skip(path: Path) -> str | None:
    if not path.name.endswith((".json", ".json.gz")):
        return "name does not end in .json or .json.gz"
    if path.name.startswith("."):
        return "hidden file"
    if not path.is_file():
        return "not a regular file, or a broken link"
    return None
