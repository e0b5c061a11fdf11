"""Making views that read each other, two at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from trace_sql.views import View, sources

if TYPE_CHECKING:
    from trace_sql import engine

_Make = Callable[["engine.DuckDBPyConnection", View], bool]


def side_by_side(
    connect: Callable[[], engine.DuckDBPyConnection],
    views: Sequence[View],
    make: _Make,
    first: str | None = None,
) -> None:
    """Call `make` for each view when what it reads is there, on two connections of `connect`.

    `views` stand in an order that would do; `first` is the one to reach as soon as may be. Where
    `make` returns False no further view is made. Most of a view's cost on a small trace is
    planning, which uses one core. Raises the first error of `make`.
    """
    if not views:
        return
    line = _Line(views, first)

    def work() -> None:
        with closing(connect()) as connection:
            while view := line.next():
                try:
                    if make(connection, view):
                        line.done(view)
                    else:
                        line.stop()
                except BaseException as error:
                    line.stop(error)

    beside = threading.Thread(target=work)
    if len(views) > 1:
        beside.start()
    work()
    if len(views) > 1:
        beside.join()
    if line.error is not None:
        raise line.error


class _Line:
    """The views that wait; those before the longest chain of others come first."""

    def __init__(self, views: Sequence[View], first: str | None) -> None:
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self._views = {view.name: view for view in views}
        self._reads = {name: sources(name) & self._views.keys() for name in self._views}
        self._height = {name: len(views) if name == first else 0 for name in self._views}
        for name in reversed(self._views):
            for source in self._reads[name]:
                self._height[source] = max(self._height[source], self._height[name] + 1)

    def next(self) -> View | None:
        """Return a view that can be made now; None when there is none left."""
        with self._changed:
            while self._views:
                ready = [name for name in self._views if not self._reads[name]]
                if ready:
                    return self._views.pop(max(ready, key=self._height.__getitem__))
                self._changed.wait()
            return None

    def done(self, view: View) -> None:
        with self._changed:
            self._reads = {name: reads - {view.name} for name, reads in self._reads.items()}
            self._changed.notify_all()

    def stop(self, error: BaseException | None = None) -> None:
        with self._changed:
            self.error = self.error or error
            self._views.clear()
            self._changed.notify_all()
