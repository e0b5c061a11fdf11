"""What files were when they were last hashed, so that an unchanged one is not read again."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from trace_sql.digest import blake2b
from trace_sql.errors import BadInputError
from trace_sql.source import TraceFile, content_hash, label

_ID_DIGITS = 12
_SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was hashed may change again within one tick."""


class PathMemory:
    """One small file under `folder` for each path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path_file(self, file: TraceFile) -> Path:
        place = os.fsencode(label(file.path.absolute(), file.member))
        key = blake2b(place, digest_size=16).hexdigest()
        return self._folder / f"{key}.json"

    def recall(self, file: TraceFile, identity: dict[str, Any]) -> str | None:
        """Return the trace_id that `file` had when it was last hashed, None if it has changed."""
        try:
            known = json.loads(self._path_file(file).read_text(encoding="utf-8"))
            trace_id = known.pop("trace_id")
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        return str(trace_id) if known == identity else None

    def remember(self, file: TraceFile, identity: dict[str, Any], trace_id: str) -> None:
        if time.time_ns() - max(identity["mtime_ns"], identity["ctime_ns"]) < _SETTLED_NS:
            return
        if self.recall(file, identity) != trace_id:
            # Only saves time: a store that cannot be written still answers.
            with contextlib.suppress(OSError):
                write_json(self._path_file(file), {**identity, "trace_id": trace_id})


def identity_of(file: TraceFile) -> dict[str, Any]:
    """Return what tells a changed file: where it is, size, inode and times."""
    try:
        stat = file.path.stat()
    except OSError as error:
        raise BadInputError(f"{file.path}: cannot be read ({error.strerror})") from error
    return {
        "path": label(file.path.absolute(), file.member),
        "size": stat.st_size,
        "inode": stat.st_ino,
        "mtime_ns": stat.st_mtime_ns,
        # Tools can set mtime back, not this one.
        "ctime_ns": stat.st_ctime_ns,
    }


def content_id(file: TraceFile) -> str:
    """Return the trace_id of a file's content; raises BadInputError where it cannot be read."""
    return content_hash(file.path, file.member)[:_ID_DIGITS]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `path` so that it is whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        part.write_text(json.dumps(content, indent=1), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
