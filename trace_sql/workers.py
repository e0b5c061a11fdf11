"""Many files ingested at once, each in a process of its own, where that is faster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trace_sql.errors import TraceSqlError
from trace_sql.inputs import Input
from trace_sql.settings import Settings
from trace_sql.store import Ingested, Store

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

Progress = Callable[[int, int, int, int], None]
"""Called with files done and in all, bytes of them done and in all."""

_MOST = 8
_CORES_EACH = 2
"""A file is parsed on two cores: with fewer than four, processes only wait for each other."""
_WORTH_BYTES = 2 << 20
"""A process takes a quarter second to start, which is the time of so much gzip."""
_REPORT_S = 0.1


@dataclass(frozen=True)
class Outcome:
    """What became of an input: its traces, or why there is none."""

    ingested: tuple[Ingested, ...] = ()
    error: TraceSqlError | None = None


def ingest_all(
    store: Store,
    inputs: Sequence[Input],
    settings: Settings,
    progress: Progress,
    processes: int | None = None,
) -> list[Outcome]:
    """Ingest all inputs; return what became of each, in their order.

    `processes` says how many work at once; None lets cores and sizes decide. None is left running
    when this returns or raises.
    """
    number = _useful(store, inputs) if processes is None else min(processes, len(inputs))
    tally = _Tally(inputs, progress)
    if number > 1:
        return _side_by_side(store, inputs, settings, tally, number)
    outcomes = []
    for index, one in enumerate(inputs):

        def report(done: int, total: int, index: int = index) -> None:
            tally.read(index, done, total)

        outcomes.append(_ingest(store, one, settings, report))
        tally.finish(index)
    return outcomes


class _Tally:
    """How far all files are, from how far each is."""

    def __init__(self, inputs: Sequence[Input], progress: Progress) -> None:
        self._sizes = [one.size for one in inputs]
        self._done = [0] * len(inputs)
        self._files = 0
        self._progress = progress

    def read(self, index: int, done: int, total: int) -> None:
        # A file that is read again starts again.
        self._done[index] = max(self._done[index], min(done, self._sizes[index] or total))
        self._report()

    def finish(self, index: int) -> None:
        self._done[index] = self._sizes[index]
        self._files += 1
        self._report()

    def _report(self) -> None:
        self._progress(self._files, len(self._sizes), sum(self._done), sum(self._sizes))


def _useful(store: Store, inputs: Sequence[Input]) -> int:
    """Return how many processes are worth their start; a limit of memory is meant for all."""
    if store.memory_limit is not None:
        return 1
    worth = sum(one.size for one in inputs) // _WORTH_BYTES
    return min(len(inputs), _cores() // _CORES_EACH, worth, _MOST)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ingest(
    store: Store, one: Input, settings: Settings, progress: Callable[[int, int], None]
) -> Outcome:
    try:
        done = store.ingest(one.path, settings, progress=progress, member=one.member)
        return Outcome((done, *done.further))
    except TraceSqlError as error:
        return Outcome(error=error)


@dataclass(frozen=True)
class _Worker:
    process: SpawnProcess
    connection: Connection


def _side_by_side(
    store: Store, inputs: Sequence[Input], settings: Settings, tally: _Tally, number: int
) -> list[Outcome]:
    from multiprocessing.connection import wait

    outcomes: dict[int, Outcome] = {}
    # The longest first, so that none is left for the end.
    waiting = iter(sorted(range(len(inputs)), key=lambda index: -inputs[index].size))
    busy: dict[Connection, tuple[_Worker, int]] = {}
    started: list[SpawnProcess] = []

    def give(worker: _Worker | None) -> None:
        """Have `worker`, or a new one, take the next file; end it where there is none."""
        index = next(waiting, None)
        if index is None:
            if worker:
                worker.connection.close()
            return
        if worker is None:
            worker = _start(store, settings)
            started.append(worker.process)
        busy[worker.connection] = worker, index
        # One that is dead is noticed where its answer is read.
        with suppress(OSError):
            worker.connection.send(inputs[index])

    try:
        for _ in range(number):
            give(None)
        while busy:
            for one in wait(list(busy)):
                ready = cast("Connection", one)
                worker, index = busy[ready]
                try:
                    message = ready.recv()
                except (EOFError, OSError):
                    del busy[ready]
                    worker.process.join()
                    outcomes[index] = Outcome(error=_killed(inputs[index], worker.process))
                    tally.finish(index)
                    give(None)
                    continue
                if isinstance(message, Outcome):
                    del busy[ready]
                    outcomes[index] = message
                    tally.finish(index)
                    give(worker)
                else:
                    tally.read(index, *message)
    finally:
        for worker, _ in busy.values():
            worker.process.kill()
        for process in started:
            process.join()
    return [outcomes[index] for index in range(len(inputs))]


def _start(store: Store, settings: Settings) -> _Worker:
    from multiprocessing import get_context

    # A fork would share the engine's threads, which it does not survive.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, _options(store), settings), daemon=True)
    process.start()
    # Else its end would not be seen.
    theirs.close()
    return _Worker(process, ours)


def _options(store: Store) -> dict[str, Any]:
    """Return what a store in another process is made with."""
    return {
        "folder": store.folder,
        "strict": store.strict,
        "memory_limit": store.memory_limit,
    }


def _killed(one: Input, process: SpawnProcess) -> TraceSqlError:
    code = process.exitcode or 0
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return TraceSqlError(
        f"{one.label}: the process that read it ended ({how}), as for want of memory; ingest it"
        " alone"
    )


def _work(connection: Connection, options: dict[str, Any], settings: Settings) -> None:
    """Ingest what comes through `connection` until it is closed."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store = Store(**options)
    with suppress(EOFError, OSError):
        while True:
            one = connection.recv()
            connection.send(_ingest(store, one, settings, _reporter(connection)))


def _reporter(connection: Connection) -> Callable[[int, int], None]:
    last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_S:
            last = time.monotonic()
            connection.send((done, total))

    return report
