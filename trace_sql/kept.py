"""What is worked out from the package's own files, kept like Python's compiled ones.

It stands in the package's `__pycache__`, or where nothing may be written there in a folder that is
this user's alone. The store would not do: what it holds is data that may come from anyone, and SQL
read from there would be run.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from trace_sql.digest import blake2b
from trace_sql.resources import cache_folder

_KINDS = (".sql", ".toml", ".py")


def state_of(*folders: Path) -> str:
    """Return a key of our modules and of the SQL and TOML files in these folders.

    It tells their places, sizes and times of change, of which a program can set back one alone.
    """
    package = Path(__file__).parent
    states = [sorted(_states(str(folder))) for folder in (package, *folders)]
    return blake2b(repr(states).encode(), digest_size=8).hexdigest()


def find(name: str) -> Any:
    """Return what was kept under a name, as JSON holds it, None where nothing can be read."""
    for folder in filter(_is_safe, _folders()):
        with contextlib.suppress(OSError, ValueError):
            return json.loads((folder / name).read_bytes())
    return None


def keep(name: str, content: Any, most: int) -> None:
    """Keep `content` under a name `<kind>-<key>`, and no more than `most` of its kind."""
    # Only saves time: there may be no place that can be written.
    for folder in _folders()[1 if sys.dont_write_bytecode else 0 :]:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_safe(folder):
                _write(folder / name, json.dumps(content), most)
                return


def _states(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_KINDS) and not entry.name.startswith("."):
                stat = entry.stat()
                yield entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
            elif entry.is_dir():
                yield from _states(entry.path)


def _folders() -> list[Path]:
    """Folders that may hold what is kept; what is in the last one must be ours to be trusted."""
    package = Path(cache_from_source(__file__)).parent
    try:
        return [package, cache_folder() / "trace_sql_plans"]
    except RuntimeError:
        return [package]


def _is_safe(folder: Path) -> bool:
    """Whether nobody but this user, or who installed the package, could have written there."""
    if folder.parent == Path(__file__).parent or not hasattr(os, "getuid"):
        return True
    try:
        stat = folder.stat()
    except OSError:
        return False
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022


def _write(target: Path, text: str, most: int) -> None:
    kind = target.name.partition("-")[0]
    old = sorted(target.parent.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime)
    for path in old[: max(0, len(old) - most + 1)]:
        path.unlink(missing_ok=True)
    part = target.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
