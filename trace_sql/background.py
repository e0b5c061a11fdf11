"""Work beside the caller's: jobs that a thread of their own does, one after the other."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

_NICE = 10
"""What is done beside the caller gets a tenth of a core that the caller needs too."""


class Background:
    """Does jobs in order, beside the caller; there is no thread while there is no job.

    After a job that failed the others are left out, and `finish` raises its error.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def do(self, job: Callable[[], object]) -> None:
        """Call `job` when the jobs before it are done."""
        with self._lock:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work)
                self._thread.start()

    def finish(self) -> None:
        """Wait for all jobs; raises what stopped them."""
        while thread := self._thread:
            thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _work(self) -> None:
        if sys.platform == "linux":
            # Of this thread alone: there each has a priority.
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while job := self._next():
            try:
                job()
            except BaseException as failure:
                with self._lock:
                    self._failure = failure
                    self._jobs.clear()

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._thread = None
            return None
