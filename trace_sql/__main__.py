"""The command `trace-sql`, also as `python -m trace_sql`: what starts and ends the process.

A question to a trace in the store takes a fifth of a second, most of it to start and to end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading
from typing import NoReturn

_WITHOUT_ENGINE = {"hardware", "schema", "--help", "-h", "--version"}


def main() -> None:
    # What is loaded stays: to look through it for garbage is of no use.
    gc.disable()
    # The engine takes half as long to open as all else takes to start, so it is opened beside that.
    if sys.argv[1:] and not _WITHOUT_ENGINE.intersection(sys.argv):
        # What fails here fails again where it is needed, and is reported there.
        with contextlib.suppress(ImportError, MemoryError):
            from trace_sql import engine

            engine.open_early()
    from trace_sql.cli import main as command

    gc.freeze()
    gc.enable()
    try:
        command()
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> NoReturn:
    """End the process at once: to free one by one what the system frees anyway takes 30 ms."""
    with contextlib.suppress(KeyboardInterrupt):
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
