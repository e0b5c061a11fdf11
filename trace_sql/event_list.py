"""The elements of one `traceEvents` list, in pieces: quickly where they are whole, else with care.

A piece is the text of some elements. Between two of them stands a comma with white space around
it; or, for a list that is not checked, MARK or the `separator` of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from trace_sql.event_marks import DOCUMENT, EVENT, NEXT, is_event, is_utf8, loaded, may_begin
from trace_sql.event_sql import MARK
from trace_sql.json_value import MAX_BYTES, value_end
from trace_sql.losses import DETAIL
from trace_sql.mending import mend, without_repeats
from trace_sql.text_reading import TextReading

PIECE_BYTES = 1 << 19
"""A piece of a list has about so many bytes, and the end of the list is among as many last ones."""
_MAX_CUT = 8 << 20

_BETWEEN = re.compile(r"\}\s*,\s*\{")
_CUT = re.compile(_BETWEEN.pattern.encode())
_LAST = re.compile(r"\}\s*(?=\])")
_LIST_KEY = '"traceEvents"'
_NEAR_END = 64
"""An end that is found this near to the end of the buffer may be another one."""
_TRIES = 3
_TRIES_WITHIN = 8
"""Beginnings of events within a damaged one that are looked at."""
UNKNOWN = -(1 << 60)
"""A number of commas that nobody is to count on."""


class EventList:
    """The list that `document` has just opened, as its document `number`.

    Without `document.count` nothing is checked but what stands near the end of the text.
    """

    def __init__(self, document: TextReading, number: int, *, bare: bool, mine: bool) -> None:
        self._document = document
        self._window = document.window
        self._number = number
        self._bare = bare
        self._mine = mine
        """Whether its pieces are given out; those of documents within it always are."""
        self._events = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._commas = 1
        """Since the last element; the first needs none."""
        self._adrift = False
        """Whether what comes next may be a part of an event that was lost."""
        self._careful = 0
        """Bytes ahead that are to be read one element after the other."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces; go behind the end of the list."""
        if self._document.count is None:
            yield from self._trusted()
        yield from self._checked()
        if self._mine:
            self._document.n_counted = self._events

    def _trusted(self) -> Iterator[bytes]:
        """Yield all but the end of the list, or all of it where its end is plain to see."""
        window = self._window
        window.have(PIECE_BYTES)
        first = _BETWEEN.search(window.text, window.at)
        self._document.separator = first[0] if first else ""
        yield from window.cut(_CUT, PIECE_BYTES, _MAX_CUT)
        if not window.ended:
            # One huge event, or another layout: with care.
            return
        if window.skip_space() != "]" and (last := _LAST.search(window.text, window.at)):
            yield window.bytes(last.end() - window.at)
            window.at = last.end()
            self._document.trusting = True

    def _checked(self) -> Iterator[bytes]:
        """Yield what is left of the list; go behind its end."""
        window = self._window
        while mark := window.skip_space():
            if mark == ",":
                window.at += 1
                self._commas += 1
            elif mark == "]":
                if self._commas == 1 and self._events:
                    self._note("trailing_comma")
                window.at += 1
                break
            else:
                yield from self._next_elements(mark)
        else:
            self._note_cut()
        yield from self._flush()

    def _next_elements(self, mark: str) -> Iterator[bytes]:
        """Take the element here, which `mark` begins, or many at once."""
        if self._commas > 1:
            self._note("extra_comma")
        elif self._commas == 0 and self._events and mark == "{" and not self._at_document():
            self._note("missing_comma")
        elif self._commas == 0 and self._events:
            self._adrift = True
        self._commas = 0
        if mark == "{":
            piece = self._whole_piece()
            if piece is not None:
                yield from self._flush()
                if self._mine:
                    yield piece
                self._commas = 1
                return
            if self._nested():
                yield from self._flush()
                self._window.at += 1
                yield from self._document.members()
                return
        self._element()
        if self._size >= PIECE_BYTES:
            yield from self._flush()

    def _flush(self) -> Iterator[bytes]:
        if self._parts and self._mine:
            mark = MARK if self._document.count is None else ","
            yield mark.encode().join(self._parts)
        self._parts = []
        self._size = 0

    def _whole_piece(self) -> bytes | None:
        """Take a piece of many elements and the comma behind it, if all of it is well."""
        window, count = self._window, self._document.count
        if count is None or self._careful > 0 or self._adrift:
            return None
        window.have(2 * PIECE_BYTES)
        match = _BETWEEN.search(window.text, window.at + PIECE_BYTES)
        size = (match.start() + 1 if match else len(window.text)) - window.at
        piece = window.bytes(size)
        n = count(piece) if match and _LIST_KEY.encode() not in piece else None
        if match is None or n is None:
            self._careful = size
            return None
        self._events += n
        window.at = match.end() - 1
        return piece

    def _nested(self) -> bool:
        """Say whether the element here is a document of its own."""
        window = self._window
        begins_so = self._at_document()
        if not begins_so and window.text.find(_LIST_KEY, window.at, window.at + PIECE_BYTES) < 0:
            return False
        end = value_end(window)
        value = None if end is None else loaded(window.text[window.at : window.at + end])
        if isinstance(value, dict):
            return isinstance(value.get("traceEvents"), list)
        return begins_so

    def _at_document(self) -> bool:
        return bool(DOCUMENT.match(self._window.text, self._window.at))

    def _element(self) -> None:
        """Take one element, mend it, or lose it."""
        window = self._window
        if self._adrift and not may_begin(window, 0):
            self._lose()
            return
        end = value_end(window)
        if end is not None:
            text = window.bytes(end)
            if is_utf8(text):
                self._keep(text, end)
                return
        self._damaged(end)

    def _damaged(self, end: int | None) -> None:
        """Mend or lose the element here; `end` is known where only its strings are damaged."""
        window = self._window
        size = 0
        for _ in range(_TRIES):
            size = self._next(size + 1) if end is None else end
            text = window.bytes(size).rstrip(b", \t\r\n")
            mended = mend(text) if text.startswith(b"{") else None
            if mended is not None:
                for kind in mended.kinds or ("unusual_json",):
                    self._note(kind, len(text))
                self._keep(mended.text, size)
                break
        else:
            self._lose()
            return
        self._commas = UNKNOWN

    def _lose(self) -> None:
        window = self._window
        size = self._next(1)
        size = self._inner_event(size) or size
        if window.ended and window.at + size >= len(window.text):
            self._document.cut(self._number, size, "an event", self._events)
        else:
            self._document.lose(self._number, "unreadable", size, event=self._events)
        window.at += size
        self._careful -= size
        self._adrift = True
        # Whether a comma was taken with it is not worth knowing.
        self._commas = UNKNOWN

    def _next(self, start: int) -> int:
        """Return how far it is to where the next element may begin, at least `start`."""
        window = self._window
        end: int | None = None
        while True:
            match = NEXT.search(window.text, window.at + start)
            if match and (match.end() + _NEAR_END < len(window.text) or window.ended):
                group = "event" if match["event"] else "end" if match["end"] else 0
                start = match.start(group) - window.at
                if group == "end" and match["sure"] is None:
                    end = end or start
                elif group != "event" or may_begin(window, start):
                    return start
                start += 1
            elif window.ended or len(window.text) - window.at > MAX_BYTES:
                return end or len(window.text) - window.at
            else:
                window.more()

    def _inner_event(self, size: int) -> int | None:
        """Return where a whole event stands inside a damaged one that was cut by it."""
        window = self._window
        found = EVENT.finditer(window.text, window.at + 1, window.at + size)
        for start in [match.start() - window.at for match in islice(found, _TRIES_WITHIN)]:
            end = value_end(window, start)
            if end is not None and is_event(window, start, end, named=True):
                return start
        return None

    def _keep(self, text: bytes, size: int) -> None:
        if self._document.count is not None:
            text, repeated = without_repeats(text)
            for member in repeated:
                self._note("duplicate_key", size, member.decode(errors="replace")[:DETAIL])
        self._adrift = False
        self._parts.append(text)
        self._size += len(text)
        self._events += 1
        self._careful -= size
        self._window.at += size

    def _note(self, kind: str, size: int = 0, detail: str | None = None) -> None:
        """Note that something was repaired."""
        self._document.lose(
            self._number, kind, size, repaired=True, event=self._events, detail=detail
        )

    def _note_cut(self) -> None:
        """Note that the text ended between two elements."""
        if self._bare:
            # The format allows it, so nobody can tell whether more was to come.
            self._note("unclosed_list")
        else:
            self._document.cut(self._number, 0, "the list of events", self._events)
