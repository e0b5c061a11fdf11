"""From command-line words to traces: which trace is meant, and the settings to analyse it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trace_sql.database import foresee_split
from trace_sql.errors import RefusedError, UsageError
from trace_sql.inputs import member_of, single
from trace_sql.progress import Progress
from trace_sql.safe_text import utf8
from trace_sql.store import Settings, Store


def read_config(path: Path) -> dict[str, Any]:
    """Return a config.json as a dict; raises BadInputError, which names it, where it is none."""
    from trace_sql.model import Model

    Model.from_config(path)
    return dict(json.loads(path.read_bytes()))


def settings_from(store: Store, options: dict[str, Any]) -> Settings:
    """Turn the selection options of a command into settings; what was not given stays None.

    `start` and `end` are seconds from what the Perfetto UI shows as zero.
    """
    options = {key: utf8(one) if isinstance(one, str) else one for key, one in options.items()}
    config = options.get("config")
    capture = options.get("capture")
    start, end = options.get("start"), options.get("end")
    if start is not None and end is not None and start >= end:
        raise UsageError(f"--from {start:g} is not before --to {end:g}")
    return Settings(
        run=options.get("run"),
        tags=_tags(options.get("tag") or ()),
        config_path=utf8(str(config)) if config else None,
        config=read_config(config) if config else None,
        profile=options.get("profile"),
        num_layers=options.get("num_layers"),
        anchor_kernel=options.get("anchor_kernel"),
        blocks_per_layer=options.get("blocks_per_layer"),
        anchor_offset=options.get("anchor_offset"),
        pid=options.get("pid"),
        device=options.get("device"),
        phase=options.get("phase"),
        from_ns=_nanoseconds(start),
        to_ns=_nanoseconds(end),
        capture=find_trace(store, str(capture)) if capture else None,
    )


def choose(store: Store, text: str, options: dict[str, Any]) -> tuple[str, Settings]:
    """Return the trace that `text` names, and its settings with a command's options in place.

    Raises what `settings_from` and `find_trace` raise.
    """
    settings = settings_from(store, options)
    foresee_split(settings)
    trace_id = find_trace(store, text)
    return trace_id, store.settings(trace_id).merged(settings)


def find_trace(store: Store, text: str) -> str:
    """Return the trace that `text` names; a file is ingested unless its content is stored.

    Raises UsageError where `text` is neither a file nor names one trace of the store.
    """
    path = Path(text)
    if path.is_dir():
        raise UsageError(f"{text} is a folder; `trace-sql ingest {text}` takes all its traces")
    if path.exists() or member_of(path):
        known = _stored(store, path)
        documents = store.documents(known)
        if len(documents) > 1:
            raise RefusedError(
                f"{text} holds {len(documents)} traces, one behind the other; name one of"
                f" {', '.join(documents)} (`trace-sql traces` shows their ranks)"
            )
        return known
    if path.suffix in (".json", ".gz") or len(path.parts) > 1:
        raise UsageError(f"{text}: no such file")
    return store.resolve(text)


def _stored(store: Store, path: Path) -> str:
    """Return the trace_id of the one trace that a path names; it is ingested unless it is known."""
    known = store.find_path(path) if path.is_file() else None
    if known is not None:
        return known
    one = single(path)
    known = store.find_path(one.path, one.member) if one.member else None
    if known is not None:
        return known
    with Progress(f"ingesting {path.name}") as progress:
        return store.take_in(one.path, progress=progress.bytes, member=one.member).trace_id


def _tags(pairs: tuple[str, ...]) -> dict[str, str] | None:
    tags = {}
    for pair in map(utf8, pairs):
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--tag {pair!r}: give it as key=value")
        tags[key] = value
    return tags or None


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)
