"""How far long work is, as one line on stderr; nothing where that is no terminal."""

from __future__ import annotations

import shutil
import sys
import time

from trace_sql.safe_text import clean

_CELLS = 20
_QUIET_S = 0.3
"""Work that takes no longer needs no line."""
_PAUSE_S = 0.05
"""A terminal is slower than the work it tells of."""


class Progress:
    """A bar, what is done, its rate and the time left; gone when its `with` block is left."""

    def __init__(self, what: str) -> None:
        self._what = clean(what)
        self._start = time.monotonic()
        self._last = self._start
        self._shown = False

    def bytes(self, done: int, total: int) -> None:
        """Show bytes of the file read so far and in all."""
        self._show(f"of {total / 1e6:.1f} MB", done, total, rate=True)

    def files(self, files: int, all_files: int, done: int, total: int) -> None:
        """Show files done and in all, bytes read of them so far and in all."""
        # Of one file there is no more to say.
        many = f", {files} of {all_files} files" if all_files > 1 else ""
        self._show(f"of {total / 1e6:.1f} MB{many}", done, total, rate=True)

    def count(self, done: int, total: int) -> None:
        """Show items done so far and in all."""
        self._show(f"{done} of {total}", done, total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def _show(self, text: str, done: int, total: int, *, rate: bool = False) -> None:
        now = time.monotonic()
        elapsed = now - self._start
        if elapsed < _QUIET_S or now - self._last < _PAUSE_S or not sys.stderr.isatty():
            return
        self._last = now
        share = min(done / total, 1.0) if total else 0.0
        bar = "#" * round(share * _CELLS)
        parts = [f"[{bar:<{_CELLS}}] {100 * share:3.0f} % {text}"]
        if rate:
            parts.append(f"{done / elapsed / 1e6:.1f} MB/s")
        if share:
            parts.append(f"{elapsed * (1 - share) / share:.0f} s left")
        line = f"{self._what} {', '.join(parts)}"
        # A line that wraps could not be taken back.
        sys.stderr.write(f"\r\033[K{line[-shutil.get_terminal_size().columns + 1 :]}")
        sys.stderr.flush()
        self._shown = True
