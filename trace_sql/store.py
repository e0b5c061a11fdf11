"""The folder of flattened traces: one subfolder a trace, named by its content.

    <folder>/v<SCHEMA_VERSION>/traces/<trace_id>/{events,losses,facts}.parquet, settings.json
    <folder>/v<SCHEMA_VERSION>/paths/<key>.json    what a file was when it was last hashed
    <folder>/v<SCHEMA_VERSION>/tmp/<host>.<pid>.<random>/    an ingest in progress

A trace folder appears by one rename, so a reader sees a whole trace or none. Of a file that holds
several documents the first has the id of the file and appears last, the others are <id>.1, <id>.2.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trace_sql.arrival import Arrival, Made, make_document
from trace_sql.background import Background
from trace_sql.errors import BadInputError, TraceSqlError, UsageError
from trace_sql.events import SCHEMA_VERSION
from trace_sql.losses import refuse_losses
from trace_sql.path_memory import PathMemory, content_id, identity_of, write_json
from trace_sql.settings import Settings
from trace_sql.source import TraceFile

if TYPE_CHECKING:
    from trace_sql import engine

__all__ = ["Ingested", "Settings", "Store", "TraceEntry", "default_folder"]


class Ingested(NamedTuple):
    trace_id: str
    name: str
    fresh: bool
    """False where the store held the trace already."""
    further: tuple[Ingested, ...] = ()
    """The other documents of the file."""


class TraceEntry(NamedTuple):
    trace_id: str
    name: str
    folder: Path
    settings: Settings

    @property
    def events_path(self) -> Path:
        return self.folder / "events.parquet"

    @property
    def losses_path(self) -> Path:
        return self.folder / "losses.parquet"

    @property
    def facts_path(self) -> Path:
        return self.folder / "facts.parquet"


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
    """The traces under `folder`; nothing is created before the first ingest.

    With `strict` a file that cannot be read as it stands is refused. The engine takes no more than
    `memory_limit` bytes while it flattens a large file.
    """

    def __init__(
        self, folder: Path, *, strict: bool = False, memory_limit: int | None = None
    ) -> None:
        self.folder = folder
        self.strict = strict
        self.memory_limit = memory_limit
        root = folder / f"v{SCHEMA_VERSION}"
        self._traces = root / "traces"
        self._paths = PathMemory(root / "paths")
        self.tmp = root / "tmp"
        self._background = Background()
        self._arrival: Arrival | None = None
        self._flat: tuple[str, engine.Workspace] | None = None

    def ingest(
        self,
        path: Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
        member: str | None = None,
    ) -> Ingested:
        """Flatten the trace file `path` into the store, unless its content is there already.

        `member` is the trace in an archive. `settings` are merged into those the trace has.
        `progress` gets bytes of the file flattened and in all. Raises BadInputError where `path`
        is no trace or changes while it is read, LossyError where the store is strict and `path` is
        damaged, TraceSqlError where the store cannot be written.
        """
        ingested = self.take_in(path, settings, progress, member)
        if ingested.fresh:
            ingested = ingested._replace(fresh=self.settle())
        return ingested

    def take_in(
        self,
        path: Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
        member: str | None = None,
    ) -> Ingested:
        """Do what `ingest` does, but leave the files of a small trace to be written meanwhile.

        Its entry is known from now on, its tables are there for `take_flat`, and its files from
        `settle` on, which raises what goes wrong with them.
        """
        settings = settings or Settings()
        file = TraceFile(path, member)
        before = identity_of(file)
        trace_id = self._paths.recall(file, before) or content_id(file)
        fresh = not self._holds(trace_id)
        if fresh:
            with self._writing():
                self._flatten(file, before, trace_id, settings, progress)
        else:
            for one in self.documents(trace_id):
                self._check(one)
                self.change_settings(one, settings)
        self._paths.remember(file, before, trace_id)
        first, *further = (
            Ingested(one, self.entry(one).name, fresh) for one in self.documents(trace_id)
        )
        return first._replace(further=tuple(further))

    def documents(self, trace_id: str) -> list[str]:
        """Return the trace_ids of all documents of the file that `trace_id` is the first of."""
        found = [trace_id]
        while (self._traces / f"{trace_id}.{len(found)}").is_dir():
            found.append(f"{trace_id}.{len(found)}")
        return found

    def _check(self, trace_id: str) -> None:
        """Raise LossyError where the store is strict and the trace was damaged."""
        if self.strict and not self._arrives(trace_id):
            refuse_losses(self.entry(trace_id).losses_path, self.entry(trace_id).name)

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

        They are those of `flatten`. Whoever takes them closes the workspace
        after `settle`.
        """
        flat, self._flat = self._flat, None
        return flat[1] if flat and flat[0] == trace_id else None

    def find_path(self, path: Path, member: str | None = None) -> str | None:
        """Return the trace_id of what is in the file `path` now, None if it is not stored.

        An unchanged file is not read again. Raises BadInputError where it cannot be read,
        LossyError where the store is strict and the trace was damaged.
        """
        file = TraceFile(path, member)
        identity = identity_of(file)
        trace_id = self._paths.recall(file, identity)
        if trace_id is None:
            trace_id = content_id(file)
            if self._holds(trace_id):
                self._paths.remember(file, identity, trace_id)
        if not self._holds(trace_id):
            return None
        self._check(trace_id)
        return trace_id

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
            self._check(found[0].trace_id)
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
                write_json(self._traces / trace_id / "settings.json", new.given())

    def _holds(self, trace_id: str) -> bool:
        return self._arrives(trace_id) or (self._traces / trace_id).is_dir()

    def _arrives(self, trace_id: str) -> bool:
        return self._arrival is not None and self._arrival.trace_id == trace_id

    def _flatten(
        self,
        file: TraceFile,
        before: dict[str, Any],
        trace_id: str,
        settings: Settings,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Flatten a file and have the result put in place beside what comes next."""
        from trace_sql import engine

        self.settle()
        self._flat = None
        engine.open_early()
        made: list[Made] = []
        make = partial(
            make_document,
            folder=self.tmp,
            trace_id=trace_id,
            settings=settings,
            progress=progress,
            strict=self.strict,
            memory_limit=self.memory_limit,
        )
        try:
            made.append(make(file))
            for number in range(1, made[0].flat.n_documents):
                made.append(make(file._replace(document=number)))
            if identity_of(file) != before:
                raise BadInputError(f"{file.path}: changed while it was read; wait for its writer")
            for one in made[:0:-1]:
                self._place(one)
        except BaseException:
            for one in made:
                shutil.rmtree(one.work, ignore_errors=True)
            raise
        first = made[0]
        self._flat = (trace_id, first.flat.workspace) if first.flat.workspace else None
        self._arrival = first.arrival
        self._background.do(lambda: self._place(first))

    def _place(self, made: Made) -> None:
        """Write what is still to be written of a trace and move it to where it is found."""
        place = self._traces / made.arrival.trace_id
        try:
            with self._writing():
                made.flat.write(made.work)
                self._traces.mkdir(parents=True, exist_ok=True)
                try:
                    made.work.rename(place)
                except OSError:
                    if not place.is_dir():
                        raise
                    made.arrival.new = False
        finally:
            shutil.rmtree(made.work, ignore_errors=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TraceSqlError(
                f"{self.folder}: store cannot be written ({error.strerror or error}); free space"
                " or set TRACE_SQL_STORE to another folder"
            ) from error
