"""Folders of small traces, and what `ingest` says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import Result
from command_line import command

from trace_sql.errors import ExitCode


def trace(kernels: int = 1, **keys: Any) -> bytes:
    """Return a trace whose content differs with its arguments."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "ts": at, "dur": 1}
        for at in range(kernels)
    ]
    for event in events:
        event["args"] = {"device": 0, "stream": 7}
    return json.dumps({"traceEvents": events + keys.pop("more", []), **keys}).encode()


def of_rank(rank: int, kernels: int = 1, world: int = 8) -> bytes:
    return trace(kernels, distributedInfo={"rank": rank, "world_size": world})


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def rows(result: Result) -> dict[str, dict[str, Any]]:
    """Return the rows of `ingest --format json` by file name."""
    return {Path(row["path"]).name: row for row in json.loads(result.stdout)}


def ingested(root: Path, files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Return what `trace_files` says of a folder, by file name."""
    done = command(root / "store", "ingest", folder(root / "in", files), "--format", "json")
    assert done.exit_code == ExitCode.OK, done.stderr
    return rows(done)
