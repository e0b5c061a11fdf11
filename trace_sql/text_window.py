"""The text of a source, a part of it at a time, with the place of every character in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trace_sql.source import CHUNK_BYTES, Source

_SPACE = re.compile(r"[ \t\n\r]*")
_NEAR = 16 << 10


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

    def cut(self, between: re.Pattern[bytes], size: int, most: int) -> Iterator[bytes]:
        """Take and yield pieces of about `size` bytes, but for at least as many before the end.

        A piece begins with the last byte of a match of `between` and ends with the first one of
        another; of the text between them nothing is looked at. Stops before a piece would be
        larger than `most` bytes. What is read here is copied once, and in small blocks: for
        large ones the system gives and takes back memory all the time.
        """
        head, block = b"", self.bytes(len(self.text) - self.at)
        self._base += self.at
        self.text, self.at = "", 0
        while ahead := self._block(size):
            if self.ended:
                block += ahead
                break
            # Most often there is one near the end.
            match = between.search(block, max(len(block) - _NEAR, 0)) or between.search(block)
            if match:
                piece = b"".join((head, memoryview(block)[: match.start() + 1]))
                head, block = block[match.end() - 1 :], ahead
                self._base += len(piece) + match.end() - match.start() - 2
                yield piece
            else:
                block += ahead
                if len(block) > most:
                    break
        self.text = (head + block).decode("latin-1")

    def _block(self, size: int) -> bytes:
        """Read on until there are `size` bytes; fewer at the end."""
        parts: list[bytes] = []
        while size > 0:
            parts.append(self._source.read(size))
            size -= len(parts[-1])
            if not parts[-1]:
                self.ended = True
                break
        return b"".join(parts)

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
