"""From command-line words to traces: which trace is meant, and the settings to analyse it with."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from trace_sql.errors import UsageError
from trace_sql.output import clean
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
    config = options.get("config")
    capture = options.get("capture")
    start, end = options.get("start"), options.get("end")
    if start is not None and end is not None and start >= end:
        raise UsageError(f"--from {start:g} is not before --to {end:g}")
    return Settings(
        run=options.get("run"),
        tags=_tags(options.get("tag") or ()),
        config_path=str(config) if config else None,
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


def find_trace(store: Store, text: str) -> str:
    """Return the trace that `text` names; a file is ingested unless its content is stored.

    Raises UsageError where `text` is neither a file nor names one trace of the store.
    """
    path = Path(text)
    if path.is_dir():
        raise UsageError(f"{text} is a folder; `trace-sql ingest {text}` takes all its traces")
    if path.is_file():
        known = store.find_path(path)
        if known is not None:
            return known
        with Progress(f"ingesting {path.name}") as progress:
            return store.take_in(path, progress=progress.bytes).trace_id
    if path.suffix in (".json", ".gz") or len(path.parts) > 1:
        raise UsageError(f"{text}: no such file")
    return store.resolve(text)


class Progress:
    """One line on stderr that says how far long work is; nothing where stderr is no terminal.

    The line is there inside a `with` block and goes away with it.
    """

    def __init__(self, what: str) -> None:
        self._what = clean(what)
        self._start = time.monotonic()
        self._shown = False

    def bytes(self, done: int, total: int) -> None:
        """Show bytes of the file read so far and in all."""
        self._show(f"{100 * done / max(total, 1):3.0f} % of {total / 1e6:.1f} MB", done, total)

    def count(self, done: int, total: int) -> None:
        """Show items done so far and in all."""
        self._show(f"{done} of {total}", done, total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def _show(self, text: str, done: int, total: int) -> None:
        elapsed = time.monotonic() - self._start
        # Short work needs no line.
        if not sys.stderr.isatty() or elapsed < 0.3:
            return
        left = elapsed * (total - done) / done if done else 0.0
        sys.stderr.write(f"\r\033[K{self._what}: {text}, {left:.0f} s left")
        sys.stderr.flush()
        self._shown = True


def _tags(pairs: tuple[str, ...]) -> dict[str, str] | None:
    tags = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--tag {pair!r}: give it as key=value")
        tags[key] = value
    return tags or None


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)
