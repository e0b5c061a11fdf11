"""Where the data folders are: sql/ and profiles/."""

from __future__ import annotations

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
