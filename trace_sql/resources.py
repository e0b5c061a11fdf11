"""Where the data folders are, sql/ and profiles/, and what a user keeps between commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder(name: str) -> Path:
    """Return the folder `name` ("sql" or "profiles").

    An installed wheel carries both under `trace_sql/_data`; in a checkout they stand beside
    the package. Raises FileNotFoundError where neither exists, which means a broken install.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"trace_sql data folder {name!r} is missing; reinstall trace-sql")


def cache_folder() -> Path:
    """Return the folder in which this user's programs keep what they can make again.

    Raises RuntimeError where the user has no home.
    """
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"
