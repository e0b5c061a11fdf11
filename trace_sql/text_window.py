"""The text of a source, a part of it at a time, with the place of every character in the file."""

from __future__ import annotations

import re

from trace_sql.source import CHUNK_BYTES, Source

_SPACE = re.compile(r"[ \t\n\r]*")


class TextWindow:
    """What is being read of a source: `text` from `at` on is still to be taken.

    A character of `text` is a byte of the file, whatever it means: places are bytes, and damage
    does not hinder the reading, as all that gives JSON its structure is ASCII.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = _Lines(source)
        self._base = 0
        self.text = ""
        self.at = 0
        self.ended = False
        """No more will come."""

    def more(self) -> bool:
        """Read on; False at the end. Places in `text` move, but not relative to `at`."""
        # As much as is there already, so that no long value is looked at over and over.
        data = b"" if self.ended else self._source.read(max(CHUNK_BYTES, len(self.text) - self.at))
        if not data:
            self.ended = True
            return False
        self._base += self.at
        self.text = self.text[self.at :] + data.decode("latin-1")
        self.at = 0
        return True

    def have(self, size: int) -> bool:
        """Read until there are `size` characters to take; False where there are not so many."""
        while len(self.text) - self.at < size:
            if not self.more():
                return False
        return True

    def skip_space(self) -> str:
        """Go to the next character that is no white space and return it; "" at the end."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    @property
    def offset(self) -> int:
        """The 0-based byte in the file of what is to be taken next."""
        return self._base + self.at

    def line_of(self, offset: int) -> int:
        """Return the 1-based line of a byte that was read."""
        return self._lines.line_of(offset)

    def close(self) -> None:
        self._lines.close()

    def bytes(self, size: int) -> bytes:
        """Return the next `size` bytes without taking them."""
        return self.text[self.at : self.at + size].encode("latin-1")


class _Lines:
    """Numbers of lines in a source, for the few that are asked for: it is read once more for them.

    To count them all while a file is read would take a third of that.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._again: Source | None = None
        self._rest = b""
        self._offset = 0
        self._line = 1

    def line_of(self, offset: int) -> int:
        if self._again is None or offset < self._offset:
            self.close()
            self._again = Source(self._source.path, self._source.member)
            self._rest, self._offset, self._line = b"", 0, 1
        while self._offset < offset:
            self._rest = self._rest or self._again.read()
            if not self._rest:
                break
            part = self._rest[: offset - self._offset]
            self._line += part.count(b"\n")
            self._offset += len(part)
            self._rest = self._rest[len(part) :]
        return self._line

    def close(self) -> None:
        if self._again is not None:
            self._again.close()
            self._again = None
