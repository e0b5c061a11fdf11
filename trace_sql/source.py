"""The bytes of a trace file: decompressed, counted and hashed while they are read."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from trace_sql.errors import BadInputError

Progress = Callable[[int, int], None]
"""Called with bytes of the file read so far and bytes of the file in all."""

CHUNK_BYTES = 1 << 20


class _Tally(io.RawIOBase):
    """The file as stored, counting, hashing and reporting what is read from it."""

    def __init__(self, file: IO[bytes], size: int, progress: Progress | None) -> None:
        self._file = file
        self._size = size
        self._progress = progress
        self._done = 0
        self.hash = hashlib.blake2b()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._done += len(data)
        self.hash.update(data)
        if self._progress and data:
            self._progress(self._done, self._size)
        return len(data)


class Source:
    """A file opened for reading once, from start to end; gzip is told by its first bytes.

    `raw_bytes` counts the decompressed bytes given out so far, `file_bytes` is the size of the
    file. Raises BadInputError where the file cannot be opened.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.raw_bytes = 0
        try:
            self._file = path.open("rb")
            self.file_bytes = path.stat().st_size
        except OSError as error:
            raise BadInputError(
                f"{path}: cannot be opened ({error.strerror}); give a readable trace file"
            ) from error
        self._tally = _Tally(self._file, self.file_bytes, progress)
        stored = io.BufferedReader(self._tally, CHUNK_BYTES)
        self._stream: IO[bytes] = stored
        self._damage: tuple[type[Exception], ...] = (OSError,)
        try:
            self._open_stream(stored)
        except BaseException:
            self._file.close()
            raise

    def _open_stream(self, stored: io.BufferedReader[_Tally]) -> None:
        if stored.peek(2)[:2] == b"\x1f\x8b":
            from isal import igzip, isal_zlib

            self._stream = igzip.open(stored)  # type: ignore[no-untyped-call]
            self._damage += (cast(type[Exception], isal_zlib.error),)

    def close(self) -> None:
        self._file.close()

    @property
    def content_hash(self) -> str:
        """The blake2b hex digest of the file as stored, complete once `read` has given b""."""
        return self._tally.hash.hexdigest()

    def bad(self, offset: int, what: str, event: int | None = None) -> BadInputError:
        """Return the error for `what` at decompressed byte `offset`, in event number `event`."""
        where = "" if event is None else f", event {event}"
        return BadInputError(f"{self.path}: byte {offset}{where}: {what}")

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return up to `size` more decompressed bytes, empty at the end of the file.

        Raises BadInputError for a gzip stream that is cut or damaged.
        """
        try:
            data = self._stream.read(size)
        except EOFError as error:
            what = "the gzip stream ends early; copy the file again or wait for its writer"
            raise self.bad(self.raw_bytes, what) from error
        except self._damage as error:
            what = f"cannot be read or decompressed ({error}); copy the file again"
            raise self.bad(self.raw_bytes, what) from error
        self.raw_bytes += len(data)
        return data
