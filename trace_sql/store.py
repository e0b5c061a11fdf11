"""The folder of flattened traces: one subfolder a trace, named by its content.

    <folder>/v<SCHEMA_VERSION>/traces/<trace_id>/{events,facts}.parquet, settings.json
    <folder>/v<SCHEMA_VERSION>/paths/<key>.json    what a file was when it was last hashed
    <folder>/v<SCHEMA_VERSION>/tmp/<host>.<pid>.<random>/    an ingest in progress

A trace folder appears by one rename, so a reader sees a whole trace or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trace_sql.background import Background
from trace_sql.errors import BadInputError, TraceSqlError, UsageError
from trace_sql.events import SCHEMA_VERSION
from trace_sql.inputs import trace_name
from trace_sql.settings import Settings
from trace_sql.work_folder import make_work_folder

if TYPE_CHECKING:
    from trace_sql import engine
    from trace_sql.flatten import Flattened

__all__ = ["Ingested", "Settings", "Store", "TraceEntry", "default_folder"]

_ID_DIGITS = 12
_SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was hashed may change again within one tick."""


@dataclass(frozen=True)
class Ingested:
    trace_id: str
    name: str
    fresh: bool
    """False where the store held the trace already."""


@dataclass(frozen=True)
class TraceEntry:
    trace_id: str
    name: str
    folder: Path
    settings: Settings

    @property
    def events_path(self) -> Path:
        return self.folder / "events.parquet"

    @property
    def facts_path(self) -> Path:
        return self.folder / "facts.parquet"


@dataclass
class _Arrival:
    """A trace whose files are being written; `new` says whether no other process was first."""

    trace_id: str
    settings: Settings
    new: bool = True


def default_folder() -> Path:
    """Return the store's folder: TRACE_SQL_STORE, else one in the user's cache folder."""
    if chosen := os.environ.get("TRACE_SQL_STORE"):
        return Path(chosen).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        if sys.platform == "darwin":
            cache = Path.home() / "Library" / "Caches"
        elif sys.platform == "win32":
            cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        else:
            cache = Path.home() / ".cache"
    return cache / "trace_sql"


class Store:
    """The traces under `folder`; nothing is created before the first ingest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        root = folder / f"v{SCHEMA_VERSION}"
        self._traces = root / "traces"
        self._paths = root / "paths"
        self._tmp = root / "tmp"
        self._background = Background()
        self._arrival: _Arrival | None = None
        self._flat: tuple[str, engine.Workspace] | None = None

    def ingest(
        self,
        path: Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Ingested:
        """Flatten the trace file `path` into the store, unless its content is there already.

        `settings` are merged into those the trace has. `progress` gets bytes of the file
        flattened and in all. Raises BadInputError where `path` is no whole trace or changes
        while it is read, TraceSqlError where the store cannot be written.
        """
        ingested = self.take_in(path, settings, progress)
        if ingested.fresh:
            ingested = replace(ingested, fresh=self.settle())
        return ingested

    def take_in(
        self,
        path: Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Ingested:
        """Do what `ingest` does, but leave the files of a small trace to be written meanwhile.

        Its entry is known from now on, its tables are there for `take_flat`, and its files from
        `settle` on, which raises what goes wrong with them.
        """
        settings = settings or Settings()
        before = _identity(path)
        trace_id = self._remembered(path, before) or _content_id(path)
        fresh = not self._holds(trace_id)
        if fresh:
            with self._writing():
                self._flatten(path, before, trace_id, settings, progress)
        else:
            self.change_settings(trace_id, settings)
        self._remember(path, before, trace_id)
        return Ingested(trace_id, self.entry(trace_id).name, fresh)

    def settle(self) -> bool:
        """Wait until what was taken in is written; say whether no other process was first.

        Raises TraceSqlError where the store cannot be written.
        """
        arrival = self._arrival
        try:
            self._background.finish()
        finally:
            self._arrival = None
        if arrival is None or arrival.new:
            return True
        self.change_settings(arrival.trace_id, arrival.settings)
        return False

    def take_flat(self, trace_id: str) -> engine.Workspace | None:
        """Return the tables of a small trace that was just taken in; they are given away once.

        They are FLAT_EVENTS and FLAT_FACTS of `flatten`. Whoever takes them closes the workspace
        after `settle`.
        """
        flat, self._flat = self._flat, None
        return flat[1] if flat and flat[0] == trace_id else None

    def find_path(self, path: Path) -> str | None:
        """Return the trace_id of what is in the file `path` now, None if it is not stored.

        An unchanged file is not read again. Raises BadInputError where it cannot be read.
        """
        identity = _identity(path)
        trace_id = self._remembered(path, identity)
        if trace_id is None:
            trace_id = _content_id(path)
            if self._holds(trace_id):
                self._remember(path, identity, trace_id)
        return trace_id if self._holds(trace_id) else None

    def resolve(self, text: str) -> str:
        """Return the one trace_id that `text` names: an id, a name or the start of either.

        A whole id or name comes before the start of one. Raises UsageError, with the traces
        to choose from, where none or several match.
        """
        entries = self.traces()
        exact = [entry for entry in entries if entry.trace_id == text]
        exact = exact or [entry for entry in entries if entry.name == text]
        starts = [e for e in entries if e.trace_id.startswith(text) or e.name.startswith(text)]
        found = exact or starts
        if len(found) == 1:
            return found[0].trace_id
        listed = ", ".join(f"{entry.trace_id} ({entry.name})" for entry in (found or entries)[:20])
        if found:
            raise UsageError(f"{text!r} names {len(found)} traces, give one id: {listed}")
        known = f"known: {listed}" if entries else "the store is empty"
        raise UsageError(f"no trace {text!r} in {self.folder}; {known}")

    def traces(self) -> list[TraceEntry]:
        """Return all traces, sorted by name, then id."""
        self.settle()
        ids = [folder.name for folder in self._traces.glob("[0-9a-f]*") if folder.is_dir()]
        entries = [self.entry(trace_id) for trace_id in ids]
        return sorted(entries, key=lambda entry: (entry.name, entry.trace_id))

    def entry(self, trace_id: str) -> TraceEntry:
        """Return the trace `trace_id`; raises UsageError where the store does not hold it."""
        settings = self.settings(trace_id)
        return TraceEntry(trace_id, settings.name or trace_id, self._traces / trace_id, settings)

    def settings(self, trace_id: str) -> Settings:
        """Return the settings of a trace; raises UsageError for a file that holds none."""
        if self._arrival and self._arrival.trace_id == trace_id:
            return self._arrival.settings
        path = self._traces / trace_id / "settings.json"
        try:
            return Settings(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise UsageError(f"no trace {trace_id!r} in {self.folder}; ingest it first") from error
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"{path}: not settings of this version ({error}); repair or delete the folder"
            ) from error

    def change_settings(self, trace_id: str, settings: Settings) -> None:
        """Merge `settings` into those of the trace; a reader sees the old or the new ones."""
        self.settle()
        old = self.settings(trace_id)
        new = old.merged(settings)
        if new != old:
            with self._writing():
                _write_json(self._traces / trace_id / "settings.json", new.given())

    def _holds(self, trace_id: str) -> bool:
        arriving = self._arrival is not None and self._arrival.trace_id == trace_id
        return arriving or (self._traces / trace_id).is_dir()

    def _flatten(
        self,
        path: Path,
        before: dict[str, Any],
        trace_id: str,
        settings: Settings,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Flatten a file and have the result put in place beside what comes next."""
        from trace_sql import engine
        from trace_sql.flatten import load

        self.settle()
        self._flat = None
        engine.open_early()
        work = make_work_folder(self._tmp)
        try:
            name = settings.name or trace_name(path)
            flat = load(path, work, trace_id=trace_id, name=name, progress=progress)
            if _identity(path) != before:
                raise BadInputError(f"{path}: changed while it was read; wait for its writer")
            named = replace(settings, name=name)
            _write_json(work / "settings.json", named.given())
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        self._flat = (trace_id, flat.workspace) if flat else None
        self._arrival = arrival = _Arrival(trace_id, named)
        self._background.do(lambda: self._place(arrival, work, flat))

    def _place(self, arrival: _Arrival, work: Path, flat: Flattened | None) -> None:
        """Write what is still to be written of a trace and move it to where it is found."""
        place = self._traces / arrival.trace_id
        try:
            with self._writing():
                if flat is not None:
                    flat.write(work)
                self._traces.mkdir(parents=True, exist_ok=True)
                try:
                    work.rename(place)
                except OSError:
                    if not place.is_dir():
                        raise
                    arrival.new = False
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _path_file(self, path: Path) -> Path:
        key = hashlib.blake2b(os.fsencode(path.absolute()), digest_size=16).hexdigest()
        return self._paths / f"{key}.json"

    def _remembered(self, path: Path, identity: dict[str, Any]) -> str | None:
        """Return the trace_id that `path` had when it was last hashed, None if it has changed."""
        try:
            known = json.loads(self._path_file(path).read_text(encoding="utf-8"))
            trace_id = known.pop("trace_id")
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        return str(trace_id) if known == identity else None

    def _remember(self, path: Path, identity: dict[str, Any], trace_id: str) -> None:
        if time.time_ns() - max(identity["mtime_ns"], identity["ctime_ns"]) < _SETTLED_NS:
            return
        if self._remembered(path, identity) != trace_id:
            # Only saves time: a store that cannot be written still answers.
            with contextlib.suppress(OSError):
                _write_json(self._path_file(path), {**identity, "trace_id": trace_id})

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TraceSqlError(
                f"{self.folder}: store cannot be written ({error.strerror or error}); free space"
                " or set TRACE_SQL_STORE to another folder"
            ) from error


def _identity(path: Path) -> dict[str, Any]:
    """Return what tells a changed file: where it is, size, inode and times."""
    try:
        stat = path.stat()
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read ({error.strerror})") from error
    return {
        "path": str(path.absolute()),
        "size": stat.st_size,
        "inode": stat.st_ino,
        "mtime_ns": stat.st_mtime_ns,
        # Tools can set mtime back, not this one.
        "ctime_ns": stat.st_ctime_ns,
    }


def _content_id(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:_ID_DIGITS]
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read ({error.strerror})") from error


def _write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `path` so that it is whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        part.write_text(json.dumps(content, indent=1), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
