"""Streams of bytes that end where the bytes can no longer be had, and say so.

A damaged file still holds what stands before the damage. So `read` of a stream gives all of that
and then b"", and `damage` says in words what is wrong.
"""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from trace_sql.errors import BadInputError

STORED_BYTES = 128 << 10
DECODED_BYTES = 1 << 20
"""What a decoder is given and gives at a time; larger pieces are slower, by page faults."""

MAX_RATIO = 250
FREE_BYTES = 256 << 20
"""Text may be this many times what it was compressed to, where it is longer than FREE_BYTES.

Traces reach 10 to 60; more is a file made to fill memory and disks.
"""


class Stream(Protocol):
    damage: str | None
    """What is wrong with the bytes, once `read` has given b"" too early."""

    def read(self, size: int) -> bytes:
        """Return 1 to `size` bytes, b"" at the end and where the damage begins."""

    def close(self) -> None: ...


class FileBytes:
    """A regular file, as stored; raises BadInputError where it cannot be read."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.damage: str | None = None
        self._path = path
        try:
            status = path.stat()
            # To open a pipe would wait for its writer, and a device may never end.
            if not stat.S_ISREG(status.st_mode):
                raise BadInputError(f"{path}: {irregular(status.st_mode)}; give a regular file")
            self._file = path.open("rb", buffering=0)
            self.size = status.st_size
            if offset:
                self._file.seek(offset)
        except OSError as error:
            raise BadInputError(
                f"{path}: cannot be opened ({error.strerror}); give a readable trace file"
            ) from error

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise BadInputError(
                f"{self._path}: cannot be read ({error.strerror}); copy the file again"
            ) from error

    def close(self) -> None:
        self._file.close()


class Section:
    """`size` bytes of another stream, which `skip` bytes are dropped of first."""

    def __init__(self, stream: Stream, skip: int, size: int) -> None:
        self._stream = stream
        self._skip = skip
        self._left = size
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        while self._skip:
            dropped = self._stream.read(min(self._skip, DECODED_BYTES))
            if not dropped:
                return self._ended()
            self._skip -= len(dropped)
        data = self._stream.read(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data or self._ended()

    def _ended(self) -> bytes:
        if self._skip or self._left:
            self.damage = self._stream.damage or "the archive ends inside this file"
        return b""

    def close(self) -> None:
        self._stream.close()


class Codec(NamedTuple):
    """A way of compressing: what it is called, and decoders of one frame each."""

    name: str
    new: Callable[[], Any]
    """Makes a decoder with decompress(data, max_length), eof, needs_input, unused_data."""
    error: type[Exception]
    magics: tuple[bytes, ...]
    """First bytes of a further frame; none where a stream is one frame."""


class Decoded:
    """What a compressed stream holds, all frames or members of it, up to its damage.

    `reopen` gives the compressed stream from its start; `size` is its length in bytes and `label`
    what an error calls it. Raises BadInputError for text beyond MAX_RATIO.
    """

    def __init__(
        self, codec: Codec, stored: Stream, reopen: Callable[[], Stream], size: int, label: str
    ) -> None:
        self.damage: str | None = None
        self._codec = codec
        self._stored = stored
        self._reopen = reopen
        self._size = size
        self._label = label
        self._decoder = codec.new()
        self._next = b""
        self._given = 0
        self._done = False
        # Of the frame that is being decoded: where it begins, and how far it was read and given.
        self._frame_start = 0
        self._frame_fed = 0
        self._frame_given = 0
        self._last_fed = 0

    def read(self, size: int) -> bytes:
        while not self._done:
            if self._decoder.eof and not self._open_frame():
                break
            stored = b""
            if self._decoder.needs_input:
                stored = self._next or self._stored.read(STORED_BYTES)
                self._next = b""
                if not stored:
                    self._end(self._stored.damage or f"the {self._codec.name} stream ends early")
                    break
                self._last_fed = len(stored)
                self._frame_fed += len(stored)
            try:
                data: bytes = self._decoder.decompress(stored, min(size, DECODED_BYTES))
            except self._codec.error as error:
                data = self._salvaged()
                self._end(self._explained(error))
            self._frame_given += len(data)
            self._given += len(data)
            if self._given > max(FREE_BYTES, MAX_RATIO * self._size):
                raise BadInputError(
                    f"{self._label}: {self._size} bytes unpack to more than {MAX_RATIO} times as"
                    " many, as no trace does; if it is one, unpack it and give the .json"
                )
            if data:
                return data
        return b""

    def close(self) -> None:
        self._stored.close()

    def _end(self, damage: str | None = None) -> None:
        self._done = True
        self.damage = damage

    def _open_frame(self) -> bool:
        """Start with the next frame; False where there is none, with the reason if it is bad."""
        rest = self._decoder.unused_data
        self._frame_start += self._frame_fed - len(rest)
        if not self._codec.magics:
            self._end()
            return False
        # Tapes and block devices pad with zeros.
        while len(kept := rest.lstrip(b"\0")) < 4:
            more = self._stored.read(STORED_BYTES)
            if not more:
                break
            self._frame_start += len(rest) - len(kept)
            rest = kept + more
        self._frame_start += len(rest) - len(kept)
        if not kept:
            self._end(self._stored.damage)
            return False
        if not kept.startswith(self._codec.magics):
            self._end(f"bytes that are not {self._codec.name} follow the {self._codec.name} stream")
            return False
        self._decoder = self._codec.new()
        self._next = kept
        self._frame_fed = self._frame_given = 0
        return True

    def _salvaged(self) -> bytes:
        """Return what stands between what was given and the damage.

        A decoder that fails gives nothing of the call it fails in. So the frame is decoded again,
        and what was fed last byte by byte.
        """
        again = Section(self._reopen(), self._frame_start, sys.maxsize)
        try:
            decoder = self._codec.new()
            seen = 0
            left = self._frame_fed - self._last_fed
            while left and (stored := again.read(min(left, STORED_BYTES))):
                left -= len(stored)
                seen += len(decoder.decompress(stored, DECODED_BYTES))
                while not decoder.needs_input and not decoder.eof:
                    seen += len(decoder.decompress(b"", DECODED_BYTES))
            return _until_error(self._codec, decoder, again.read, self._frame_given - seen)
        finally:
            again.close()

    def _explained(self, error: Exception) -> str:
        text = str(error)
        name = self._codec.name
        if "checksum" in text.lower():
            return f"the checksum of the {name} stream does not match"
        if "too much memory" in text:
            return f"the {name} stream needs too much memory; unpack it with zstd -d --long=31"
        # Numbers and what was tried stand in front of what is wrong.
        what = re.sub(r"^(Error -?\d+ |.*: )", "", text)
        return f"the {name} stream is damaged ({what})"


def _until_error(codec: Codec, decoder: Any, read: Callable[[int], bytes], skip: int) -> bytes:
    """Return what `decoder` gives of single bytes until it fails, without the first `skip`."""
    out = bytearray()
    try:
        while not decoder.eof and (stored := read(STORED_BYTES)):
            for at in range(len(stored)):
                out += decoder.decompress(stored[at : at + 1])
    except (codec.error, EOFError):
        pass
    return bytes(out[skip:])


class Rejoined:
    """A stream with the first bytes, which were read to look at them, in front again."""

    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head = head
        self._stream = stream
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        data = self._stream.read(size)
        self.damage = self._stream.damage
        return data

    def close(self) -> None:
        self._stream.close()


def first_bytes(stream: Stream, size: int) -> bytes:
    """Return the first `size` bytes of a stream, fewer where it is shorter."""
    data = b""
    while len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data


def unpacked(stored: Stream, reopen: Callable[[], Stream], size: int, label: str) -> Stream:
    """Return the text that a stream of `size` bytes holds, which may be compressed.

    `reopen` gives the stream once more, `label` is what an error calls it.
    """
    head = first_bytes(stored, 4)
    codec = codec_of(head)
    stored = Rejoined(head, stored)
    return stored if codec is None else Decoded(codec, stored, reopen, size, label)


def gzip() -> Codec:
    from isal import igzip_lib

    return Codec(
        "gzip",
        lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
        cast(type[Exception], igzip_lib.error),
        (b"\x1f\x8b\x08",),
    )


def deflate() -> Codec:
    from isal import igzip_lib

    return Codec(
        "zip",
        lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE),
        cast(type[Exception], igzip_lib.error),
        (),
    )


def zstd() -> Codec:
    if sys.version_info >= (3, 14):
        from compression import zstd as library
    else:
        from backports import zstd as library
    skippable = tuple(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))
    return Codec(
        "zstd", library.ZstdDecompressor, library.ZstdError, (b"\x28\xb5\x2f\xfd", *skippable)
    )


def codec_of(head: bytes) -> Codec | None:
    """Return how bytes that begin with `head` are compressed, None if they are not."""
    if len(head) > 1 and head[:3] == b"\x1f\x8b\x08"[: len(head)]:
        return gzip()
    if head.startswith(b"\x28\xb5\x2f\xfd") or (
        head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] < 0x60
    ):
        return zstd()
    return None


def irregular(mode: int) -> str:
    """Return what a file of `mode` is that is no regular file."""
    kinds = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a folder",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")
