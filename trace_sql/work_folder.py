"""Folders of work in progress, and what is left of work that was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

_ABANDONED_S = 86_400


def make_work_folder(parent: Path) -> Path:
    """Make a folder `parent`/<host>.<pid>.<random>; remove those of processes that are gone."""
    _remove_abandoned(parent)
    work = parent / f"{_host()}.{os.getpid()}.{os.urandom(4).hex()}"
    work.mkdir(parents=True)
    return work


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob("*.*.*"):
        host, pid, _ = folder.name.rsplit(".", 2)
        with contextlib.suppress(OSError):
            old = time.time() - folder.stat().st_mtime > _ABANDONED_S
            if old or (host == _host() and not _runs(int(pid))):
                shutil.rmtree(folder, ignore_errors=True)


def _host() -> str:
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform

    return platform.node()


def _runs(pid: int) -> bool:
    """Say whether a process of this machine is alive; True where that cannot be asked."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
