"""The bytes of a trace: unpacked, counted and hashed while they are read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from trace_sql.byte_streams import Decoded, Stream, first_bytes, unpacked
from trace_sql.container import located, looks_packed
from trace_sql.digest import blake2b
from trace_sql.errors import BadInputError, NotATraceError
from trace_sql.formats import HEAD_BYTES, recognise
from trace_sql.safe_text import utf8

Progress = Callable[[int, int], None]
"""Called with bytes of the file read so far and bytes of the file in all."""

CHUNK_BYTES = 1 << 20

_PACKED_LEAST = 4
"""Times that the text of a packed trace is larger than its file; ten to twenty is common."""


class TraceFile(NamedTuple):
    """What becomes one trace: a file, or `member` of an archive, and which document in it."""

    path: Path
    member: str | None = None
    document: int = 0


class _Tally:
    """A stream, counting, hashing and reporting what is read from it."""

    def __init__(self, stream: Stream, size: int, progress: Progress | None) -> None:
        self._stream = stream
        self._size = size
        self._progress = progress
        self._done = 0
        self.hash = blake2b()
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._done += len(data)
        self.hash.update(data)
        self.damage = self._stream.damage
        if self._progress and data:
            self._progress(self._done, self._size)
        return data

    def close(self) -> None:
        self._stream.close()


class Source:
    """A trace opened for reading once, from start to end: a file, or `member` of an archive.

    How it is packed is told by its first bytes. `raw_bytes` counts the bytes of text given out so
    far, `file_bytes` is the size of the file or member, `likely_bytes` what its text has at least,
    as traces go, `label` what people call it. Raises BadInputError where it cannot be opened,
    NotATraceError where it is of another format.
    """

    def __init__(
        self, path: Path, member: str | None = None, progress: Progress | None = None
    ) -> None:
        self.path = path
        self.member = member
        self.label = label(path, member)
        self.raw_bytes = 0
        self.damage: str | None = None
        """Why the text ends too early or is in doubt, known when `read` has given b""."""
        open_stored, self.file_bytes = located(path, member)
        self._tally = _Tally(open_stored(), self.file_bytes, progress)
        try:
            self._text = unpacked(self._tally, open_stored, self.file_bytes, self.label)
            packed = isinstance(self._text, Decoded)
            self.likely_bytes = self.file_bytes * (_PACKED_LEAST if packed else 1)
            self._head = first_bytes(self._text, HEAD_BYTES)
            self._refuse_foreign()
        except BaseException:
            self.close()
            raise

    def _refuse_foreign(self) -> None:
        head = self._head
        if looks_packed(head):
            what = "an archive inside an archive" if self.member else "an archive"
            raise NotATraceError(f"{self.label}: {what}; unpack it, or `ingest` it")
        foreign = recognise(head, Path(self.member or self.path).name)
        # Of text the reader says more.
        if foreign and not foreign.text:
            raise NotATraceError(f"{self.label}: {foreign}")

    def close(self) -> None:
        self._tally.close()

    @property
    def content_hash(self) -> str:
        """The blake2b hex digest of the file as stored, complete once `read` has given b""."""
        return self._tally.hash.hexdigest()

    def bad(self, offset: int, what: str, event: int | None = None) -> BadInputError:
        """Return the error for `what` at decompressed byte `offset`, in event number `event`."""
        where = "" if event is None else f", event {event}"
        return BadInputError(f"{self.label}: byte {offset}{where}: {what}")

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return 1 to `size` more bytes of text; b"" at its end, or where `damage` begins.

        Raises BadInputError where the file cannot be read, or unpacks to far more than traces do.
        """
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._text.read(size)
        self.raw_bytes += len(data)
        if not data:
            self.damage = self._text.damage
            # What follows the damage is still part of what the file is known by.
            while self._tally.read(CHUNK_BYTES):
                pass
        return data


def label(path: Path, member: str | None = None) -> str:
    """Return what people call a trace: the path, and for a member of an archive `path!member`."""
    return utf8(str(path) if member is None else f"{path}!{member}")


def content_hash(path: Path, member: str | None = None) -> str:
    """Return the `content_hash` that a Source would have; the file is read, but not unpacked.

    Raises BadInputError where it cannot be read.
    """
    digest = blake2b()
    open_stored, _ = located(path, member)
    with closing(open_stored()) as stored:
        while data := stored.read(CHUNK_BYTES):
            digest.update(data)
    return digest.hexdigest()
