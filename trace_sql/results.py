"""Where the results of a trace's analysis are: a Parquet file a view, under a key of its causes.

    <trace folder>/views/<key>/<view>.parquet
    <trace folder>/views/<key>/<hardware key>/<view>.parquet

The key covers everything a result depends on: the settings, the SQL, the profiles, the version and
the engine; of views that read the peaks of GPUs, these and the choice among them too. A result of
anything else has another key, so a stale one is never read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trace_sql.base_tables import HARDWARE
from trace_sql.digest import blake2b
from trace_sql.plan import fingerprint, settings_key
from trace_sql.store import Settings, TraceEntry
from trace_sql.views import roots

Rows = Callable[[], Sequence[Sequence[Any]]]
"""Gives the rows of a table of ON_DEMAND."""


class Results:
    """The results of one trace, with `settings` and the rows of HARDWARE that `rows` give."""

    def __init__(self, entry: TraceEntry, settings: Settings, rows: Mapping[str, Rows]) -> None:
        self.folder = entry.folder / "views" / f"{fingerprint()}-{settings_key(settings)}"
        self._rows = rows

    def path(self, name: str) -> Path:
        """Return the file of a stored view or table."""
        folder = self._hardware_folder if roots(name) & set(HARDWARE) else self.folder
        return folder / f"{name}.parquet"

    def holds(self, name: str) -> bool:
        return self.path(name).is_file()

    @cached_property
    def _hardware_folder(self) -> Path:
        text = json.dumps([list(self._rows[table]()) for table in HARDWARE])
        return self.folder / blake2b(text.encode(), digest_size=6).hexdigest()
