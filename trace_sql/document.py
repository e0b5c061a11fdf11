"""A trace file as JSON: pieces of an event list, the other keys around it, what is damaged.

A Kineto or Chrome trace is one object with the key `traceEvents`, or a bare list of events. The
list can be larger than memory, so it is handed out in pieces. What comes from the field is often
no JSON: cut short, with bytes that no string may hold, several documents in one file. Every whole
event is kept, and every place that is not goes to `Losses`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

from trace_sql.errors import BadInputError, NotATraceError
from trace_sql.event_list import UNKNOWN, EventList
from trace_sql.event_marks import DOCUMENT, TOP_KEYS, may_begin
from trace_sql.json_value import until_value, value_end
from trace_sql.losses import Losses
from trace_sql.metadata_values import joined_values, mended_value, shown, text_of, value_of
from trace_sql.source import Source
from trace_sql.text_reading import Count, TextReading

_OPENING = re.compile(r'\{\s*(?:["},]|traceEvents|\Z)|\[[\s,]*(?:[{\]]|\Z)')
"""How an object, or a list of objects, begins; words of a log have brackets, too."""
_FURTHER = re.compile(r'\{(?=\s*(?:"|traceEvents))|\[\s*(?=\{)')
_BYTE_ORDER_MARK = "\xef\xbb\xbf"
_NEAR_END = 64
_LIST = re.compile(r'"?traceEvents"?\s*:\s*(?=\[)')
_KNOWN_KEY = re.compile(rf'{DOCUMENT.pattern}|"(?:{TOP_KEYS})"\s*:|{_LIST.pattern}')
_ANY_KEY = re.compile(r'"[^"\\\n]{1,100}"\s*:')
_MAX_AHEAD = 64 << 20


class Document(TextReading):
    """The document `number` of a file, read once from start to end.

    Take all of `pieces`; after that `metadata` (every top-level key but traceEvents; {} for a
    bare list), `n_documents`, `complete` and `n_counted` are known. With `count` each piece is
    checked, and what is damaged is mended or lost. Without it all but the end is cut at `}, {`
    without looking at what stands around that: a wrong cut leaves no JSON, so whoever parses the
    pieces notices.
    """

    def __init__(
        self, source: Source, losses: Losses, number: int = 0, count: Count | None = None
    ) -> None:
        super().__init__(source, losses, number, count)
        self.metadata: dict[str, Any] = {}
        self.complete = True
        self._without_list = False
        self._may_be_known = True
        """Whether a key that profilers write may follow."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the elements of the event list, in order, in pieces of the form of `EventList`.

        Raises NotATraceError for what holds no list of events, BadInputError where nothing of it
        can be read, IrregularError where there is more than one document without `count`.
        """
        try:
            seen, n_pieces = yield from self._all_documents()
            self.end()
        finally:
            self.window.close()
        self._judge(seen, n_pieces)

    def _all_documents(self) -> Generator[bytes, None, tuple[str, int]]:
        """Yield the pieces; return what was seen where that is no JSON, and their number."""
        window = self.window
        # Of an empty file, text without any JSON, and JSON that is no trace.
        seen = "the file is empty"
        n_pieces = 0
        while mark := window.skip_space():
            window.have(_NEAR_END)
            if window.text.startswith(_BYTE_ORDER_MARK, window.at):
                window.at += len(_BYTE_ORDER_MARK)
                continue
            if not _OPENING.match(window.text, window.at):
                seen = self._skip_foreign(seen)
                continue
            window.at += 1
            for piece in self.list(bare=True) if mark == "[" else self.members():
                yield piece
                n_pieces += 1
            seen = ""
        return seen, n_pieces

    def _judge(self, seen: str, n_pieces: int) -> None:
        first = self._losses.first
        lost = bool(first and not first.repaired)
        if self.n_documents == 0 and (seen or self._without_list or not lost):
            if seen:
                hint = "a trace is a JSON object with traceEvents"
                raise self._source.bad(0, f"{seen}; {hint}")
            what = "the JSON has no list traceEvents, so it is no Kineto or Chrome trace"
            raise NotATraceError(f"{self._source.label}: {what}")
        if first is not None and lost and n_pieces == 0 and self.n_documents <= 1:
            detail = " ".join(first.detail.split())
            raise BadInputError(
                f"{self._source.label}: no whole event can be read: {first.kind} at {first.where}"
                f" ({detail}); copy the file again or record again"
            )
        if lost:
            self.complete = False

    def _skip_foreign(self, seen: str) -> str:
        """Lose text that is no JSON, up to what may open some; return what was seen."""
        window = self.window
        begin = window.bytes(12)
        size = self._opening_ahead()
        self.lose(max(self.n_documents - 1, 0), "foreign_text", size)
        window.at += size
        return f"{begin!r} starts no JSON object or list" if seen else seen

    def _opening_ahead(self) -> int:
        """Return how far it is to what may open a document, more than nothing."""
        window = self.window
        size = 1
        while size <= _MAX_AHEAD:
            match = _FURTHER.search(window.text, window.at + size)
            if not window.ended and (not match or match.end() + _NEAR_END > len(window.text)):
                size = max(size, len(window.text) - window.at - _NEAR_END)
                window.more()
            elif match is None:
                return len(window.text) - window.at
            else:
                size = match.start() - window.at
                if match[0] == "{" or may_begin(window, match.end() - window.at):
                    return size
                size += 1
        return size

    def list(self, *, bare: bool, metadata: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Read a list of events behind its `[`, as the next document."""
        number = self.begin_document()
        mine = number == self._number
        if mine:
            self.metadata = {} if metadata is None else metadata
        yield from EventList(self, number, bare=bare, mine=mine).pieces()

    def members(self) -> Iterator[bytes]:
        """Read an object behind its `{`: a list of events in pieces, other keys as metadata."""
        window = self.window
        metadata: dict[str, Any] = {}
        number = self.n_documents
        """The document that this becomes with its list."""
        begin = window.offset - 1
        commas = 1
        """Since the last member; the first needs none."""
        while mark := window.skip_space():
            if mark == "}" or DOCUMENT.match(window.text, window.at):
                if commas > 0 and (metadata or number < self.n_documents):
                    self.lose(number, "trailing_comma", 0, repaired=True)
                window.at += mark == "}"
                if number == self.n_documents:
                    self._without_list = True
                    size, detail = window.offset - begin, shown(metadata)
                    self.lose(
                        max(number - 1, 0), "foreign_object", size, detail=detail, begin=begin
                    )
                elif mark == "{":
                    self.cut(number, 0, "the trace's object")
                return
            if mark == ",":
                window.at += 1
                commas += 1
                continue
            if commas == 0 or commas > 1:
                self.lose(number, "extra_comma" if commas else "missing_comma", 0, repaired=True)
            commas = 0
            if listed := _LIST.match(window.text, window.at):
                size = listed.end() - window.at
                if window.text[window.at] != '"' or '"' not in listed[0][1:]:
                    self.lose(number, "unquoted_key", size, repaired=True)
                window.at += size + 1
                yield from self.list(bare=False, metadata=metadata)
                continue
            key_size = value_end(window)
            key = text_of(window.bytes(key_size or 0)) if mark == '"' else None
            if key is None or key_size is None:
                self._damaged_member(number, 0, None, metadata, "")
                commas = UNKNOWN
                continue
            size = key_size + until_value(window, key_size)
            if key == "traceEvents" and window.text[window.at + size : window.at + size + 1] == "[":
                window.at += size + 1
                yield from self.list(bare=False, metadata=metadata)
                continue
            end = value_end(window, size)
            value = None if end is None else value_of(window.bytes(end)[size:])
            if end is None or value is None:
                self._damaged_member(number, size, end, metadata, key)
                commas = UNKNOWN
                continue
            self._put(number, metadata, key, value[0], end)
            window.at += end
        self.cut(number, 0, "the trace's object")

    def _damaged_member(
        self, number: int, start: int, end: int | None, metadata: dict[str, Any], key: str
    ) -> None:
        """Mend or lose the member here, whose value begins at `start`; 0 where it has no key.

        Where it ends is known, or it goes on to the next key.
        """
        window = self.window
        size = 0
        # The next key of any kind may be one within the value.
        for key_ahead in (self._any_key_ahead, self._known_key_ahead):
            size = end or key_ahead(start)
            value = window.bytes(size)[start:].rstrip().rstrip(b",").rstrip()
            mended = mended_value(value) if start else None
            if mended:
                if mended.surplus:
                    size = start + len(value) - mended.surplus
                self._put(number, metadata, key, mended.value, size)
                for kind in mended.kinds:
                    self.lose(number, kind, size, repaired=True)
                break
        else:
            if window.ended and window.at + size == len(window.text):
                self.cut(number, size, "the metadata")
            else:
                self.lose(number, "unreadable_metadata", size)
        window.at += size

    def _put(self, number: int, metadata: dict[str, Any], key: str, value: Any, size: int) -> None:
        """Put a member of `size` bytes into `metadata`, joined with one of the same key."""
        if key in metadata:
            joined = joined_values(metadata[key], value)
            detail = shown({key: metadata[key]})
            self.lose(number, "duplicate_key", size, repaired=joined is not None, detail=detail)
            value = value if joined is None else joined
        metadata[key] = value

    def _any_key_ahead(self, start: int) -> int:
        """Return how far it is to the next key, at least `start` and more than nothing."""
        window = self.window
        while not (match := _ANY_KEY.search(window.text, window.at + max(start, 1))):
            if len(window.text) - window.at > _MAX_AHEAD or not window.more():
                return len(window.text) - window.at
        return match.start() - window.at

    def _known_key_ahead(self, start: int) -> int:
        """Return how far it is to the next document or key that profilers write, if there is one.

        What is no list or object else goes on to any key.
        """
        window = self.window
        while self._may_be_known:
            if match := _KNOWN_KEY.search(window.text, window.at + max(start, 1)):
                return match.start() - window.at
            if len(window.text) - window.at > _MAX_AHEAD:
                break
            self._may_be_known = window.more()
        if start and window.text[window.at + start : window.at + start + 1] in "[{":
            return len(window.text) - window.at
        return self._any_key_ahead(start)
