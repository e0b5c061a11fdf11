"""A document of a trace file on its way into the store: a folder with what will stand there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trace_sql.inputs import trace_name
from trace_sql.path_memory import write_json
from trace_sql.settings import Settings
from trace_sql.source import Progress, TraceFile
from trace_sql.work_folder import make_work_folder

if TYPE_CHECKING:
    from trace_sql.flatten import Flattened


class Arrival:
    """A trace whose files are being written; `new` says whether no other process was first."""

    def __init__(self, trace_id: str, settings: Settings) -> None:
        self.trace_id = trace_id
        self.settings = settings
        self.new = True


class Made(NamedTuple):
    """A document in the folder `work`, from where it goes to its place."""

    arrival: Arrival
    work: Path
    flat: Flattened


def make_document(
    file: TraceFile,
    *,
    folder: Path,
    trace_id: str,
    settings: Settings,
    progress: Progress | None,
    strict: bool,
    memory_limit: int | None,
) -> Made:
    """Flatten a document into a folder of its own in `folder`.

    Of the first document of a file, which has its id and name, tables may be left to be written.
    Raises what `flatten.load` raises, and leaves nothing then.
    """
    from trace_sql.flatten import load

    number = file.document
    name = settings.name or trace_name(file.path, file.member)
    named = settings._replace(name=f"{name}#{number}" if number else name)
    arrival = Arrival(f"{trace_id}.{number}" if number else trace_id, named)
    work = make_work_folder(folder)
    try:
        flat = load(
            file,
            work,
            trace_id=arrival.trace_id,
            name=named.name or "",
            progress=progress,
            strict=strict,
            memory_limit=memory_limit,
        )
        write_json(work / "settings.json", named.given())
        if number and flat.workspace:
            with flat.workspace:
                flat.write(work)
            flat = flat._replace(workspace=None)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return Made(arrival, work, flat)
