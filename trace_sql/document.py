"""A trace file as a JSON document: its bytes, its metadata and pieces of its event list.

A Kineto or Chrome trace is one object with the key `traceEvents`, or a bare list of events.
The event list can be larger than memory, so it is handed out as pieces: bytes of whole
elements with the commas between them, about `PIECE_BYTES` each. Everything around the list
is kept and parsed as one document when the list has ended.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from trace_sql.errors import BadInputError, NotATraceError
from trace_sql.source import CHUNK_BYTES, Source

PIECE_BYTES = 1 << 18
"""A piece is cut at the first element boundary after this many bytes."""

_MAX_FAST_PIECE = 8 << 20
_MAX_METADATA = 256 << 20

_LIST_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_LAST = re.compile(rb"\}\s*\]")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_CLOSER = re.compile(r"[\]}]")
_NEAR_END = 16
"""A literal, number or escape that the end of the buffer cuts is reported this near to it."""


class IrregularError(Exception):
    """The fast cut does not fit this file; `pieces(exact=True)` reads it or says what is wrong."""


class Document:
    """One trace file, read once from start to end.

    Take all of `pieces`, then `metadata`. Both raise BadInputError, which names the file, the
    0-based offset in the decompressed text and, inside the list, the 0-based event number.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._head = b""
        self._tail = b""
        self._tail_offset = 0

    def pieces(self, *, exact: bool) -> Iterator[bytes]:
        """Yield the elements of the event list, in order, joined by commas.

        With exact=False the list is cut at `}, {` without looking at what stands around it. A
        cut inside a string or a nested value leaves a piece that is not JSON between brackets,
        so whoever parses the pieces notices; IrregularError says that no cut could be found.
        With exact=True every element is parsed here, and the first fault raises BadInputError
        with its byte offset and event number.
        """
        rest = self._open_list()
        return self._exact(rest) if exact else self._fast(rest)

    def _open_list(self) -> bytes:
        """Read up to the `[` that opens the event list; return what was read after it."""
        data = self._source.read()
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        while not data[len(bom) :].strip():
            more = self._source.read()
            if not more:
                what = "the file is empty; a trace is a JSON object with traceEvents"
                raise self._source.bad(0, what)
            data += more
        start = len(data) - len(data[len(bom) :].lstrip())
        first = data[start : start + 1]
        if first == b"[":
            self._head = data[: start + 1]
            return data[start + 1 :]
        if first != b"{":
            shown = data[start : start + 12]
            raise self._source.bad(
                start, f"{shown!r} starts no JSON object or list; give a JSON trace"
            )
        searched = start
        while True:
            while match := _LIST_KEY.search(data, searched):
                searched = match.end()
                if self._opens_at_top(data[:searched]):
                    self._head = data[:searched]
                    return data[searched:]
            searched = max(searched, len(data) - 64)
            more = self._source.read(max(CHUNK_BYTES, len(data)))
            if not more or len(data) > _MAX_METADATA:
                raise self._no_list(data)
            data += more

    def _opens_at_top(self, head: bytes) -> bool:
        """Say whether `head` ends where the list of the outermost object opens."""
        try:
            document = json.loads((head + b"]}").decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise self._source.bad(
                error.start, "bytes that are not UTF-8 in the metadata"
            ) from error
        except RecursionError as error:
            raise self._source.bad(len(head), "metadata nested too deeply to read") from error
        except json.JSONDecodeError as error:
            offset = _place(error, head)
            if offset < len(head):
                raise self._source.bad(offset, f"the metadata is not JSON ({error.msg})") from error
            return False
        return bool(document.get("traceEvents") == [])

    def _no_list(self, data: bytes) -> BadInputError:
        try:
            json.loads(data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            return self._source.bad(error.start, "bytes that are not UTF-8; give a JSON trace")
        except json.JSONDecodeError as error:
            offset = _place(error, data)
            return self._source.bad(
                offset, f"not a JSON trace ({error.msg}, no list traceEvents so far)"
            )
        except RecursionError:
            return self._source.bad(0, "JSON nested too deeply to be a trace")
        what = "the JSON has no list traceEvents, so it is no Kineto or Chrome trace"
        return NotATraceError(str(self._source.bad(len(data), what)))

    def _fast(self, data: bytes) -> Iterator[bytes]:
        while not data.strip() and (more := self._source.read()):
            data += more
        if data.lstrip().startswith(b"]"):
            self._close_list(data[data.index(b"]") + 1 :])
            return
        while True:
            start = 0
            while match := _BETWEEN.search(data, start + PIECE_BYTES):
                piece = data[start : match.start() + 1]
                if _LAST.search(piece) and (end := _list_end(piece)) is not None:
                    yield piece[:end]
                    self._close_list(data[start + end + 1 :])
                    return
                yield piece
                start = match.end() - 1
            data = data[start:]
            if len(data) > _MAX_FAST_PIECE:
                raise IrregularError
            more = self._source.read()
            if not more:
                end = _list_end(data)
                if end is None:
                    raise IrregularError
                yield data[:end]
                self._close_list(data[end + 1 :])
                return
            data += more

    def _exact(self, data: bytes) -> Iterator[bytes]:
        # Undecodable bytes become lone surrogates, which `encode` then finds with their place.
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        parse = json.JSONDecoder().raw_decode
        text = decoder.decode(data)
        base = len(self._head)
        at = start = event = 0
        ended = False
        while True:
            at = _skip_space(text, at)
            fault: json.JSONDecodeError | None = None
            after = at
            try:
                if event == 0 and text.startswith("]", at):
                    self._close_list(_bytes(text[at + 1 :]) + decoder.getstate()[0])
                    return
                value, end = parse(text, at)
                after = _skip_space(text, end)
            except json.JSONDecodeError as error:
                fault = error
            except RecursionError as error:
                offset = base + len(_bytes(text[:at]))
                raise self._source.bad(offset, "event nested too deeply to read", event) from error
            if fault is None:
                unfinished = after >= len(text)
            elif fault.msg.startswith("Unterminated string"):
                unfinished = True
            elif ended:
                unfinished = not _CLOSER.search(text, fault.pos)
            else:
                unfinished = fault.pos + _NEAR_END > len(text)
            if unfinished and not ended:
                # Twice as much each time, so that one huge event is not parsed over and over.
                base += len(_bytes(text[:start]))
                text, at, start = text[start:], at - start, 0
                more = self._source.read(max(CHUNK_BYTES, len(text)))
                ended = not more
                text += decoder.decode(more, final=ended)
                continue
            if unfinished:
                what = "the file ends inside traceEvents; it was cut, get the whole file"
                raise self._source.bad(self._source.raw_bytes, what, event)
            if fault is not None:
                offset = base + len(_bytes(text[: fault.pos]))
                raise self._source.bad(
                    offset, f"not JSON ({fault.msg}); repair or record again", event
                )
            if unfit := _unfit(text[at:end], value):
                place = base + len(_bytes(text[: at + unfit[0]]))
                raise self._source.bad(place, unfit[1], event)
            event += 1
            mark = text[after]
            if mark == "]":
                yield _bytes(text[start:end])
                self._close_list(_bytes(text[after + 1 :]) + decoder.getstate()[0])
                return
            if mark != ",":
                offset = base + len(_bytes(text[:after]))
                what = f"{mark!r} where a comma or the end of traceEvents should be"
                raise self._source.bad(offset, what, event)
            at = after + 1
            if end - start >= PIECE_BYTES:
                yield _bytes(text[start:end])
                base += len(_bytes(text[:at]))
                text, at, start = text[at:], 0, 0

    def _close_list(self, data: bytes) -> None:
        """Take `data`, the last bytes read, and the rest of the file as the tail."""
        self._tail_offset = self._source.raw_bytes - len(data)
        parts = [data]
        size = len(data)
        while size <= _MAX_METADATA and (more := self._source.read()):
            parts.append(more)
            size += len(more)
        self._tail = b"".join(parts)

    def metadata(self) -> dict[str, Any]:
        """Return every top-level key but traceEvents; {} for a bare list.

        Bare NaN and infinities become strings, so that the result is JSON again.
        """
        top: list[tuple[str, Any]] = []

        def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            top[:] = pairs
            return dict(pairs)

        joined = self._head + b"]" + self._tail
        try:
            # The outermost object is the last one to be closed, so `top` ends as its keys.
            json.loads(joined.decode("utf-8-sig"), object_pairs_hook=keep, parse_constant=str)
        except UnicodeDecodeError as error:
            raise self._bad_metadata(error.start, "bytes that are not UTF-8") from error
        except RecursionError as error:
            raise self._bad_metadata(len(joined), "nested too deeply to read") from error
        except json.JSONDecodeError as error:
            place = _place(error, joined)
            if error.msg == "Extra data":
                what = "more follows the end of the trace; keep one document a file"
                raise self._bad_metadata(place, what) from error
            if place >= len(joined.rstrip()):
                what = "the file ends inside its metadata; it was cut, get the whole file"
                raise self._bad_metadata(place, what) from error
            raise self._bad_metadata(place, f"not JSON ({error.msg})") from error
        if [key for key, _ in top].count("traceEvents") > 1:
            what = "a second traceEvents list; keep one trace a file"
            raise self._bad_metadata(len(joined), what)
        return {key: value for key, value in top if key != "traceEvents"}

    def _bad_metadata(self, place: int, what: str) -> BadInputError:
        """Return the error at `place` in head, `]` and tail, as an offset in the file."""
        in_tail = place - len(self._head) - 1
        return self._source.bad(place if in_tail < 0 else self._tail_offset + in_tail, what)


def _list_end(piece: bytes) -> int | None:
    """Return where the `]` stands that closes the list around `piece`, None without one.

    `piece` must start between two elements.
    """
    depth = 0
    for match in _TOKEN.finditer(piece):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < 0:
                return match.start() if token == b"]" else None
    return None


def _unfit(text: str, value: object) -> tuple[int, str] | None:
    """Say where and why `text`, which parses as `value`, is not UTF-8 text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start, "bytes that are not UTF-8"
    if match := _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return match.start(), "half of a surrogate pair in a string"
    return None


def _place(error: json.JSONDecodeError, data: bytes) -> int:
    """Return the byte in `data` where parsing its text failed."""
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    return bom + len(error.doc[: error.pos].encode())


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
