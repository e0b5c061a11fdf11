"""Where the bytes of a trace stand: a file of its own, or a member of a zip or tar archive.

Members are read where they are: nothing is unpacked to disk.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from trace_sql.byte_streams import (
    DECODED_BYTES,
    Decoded,
    FileBytes,
    Section,
    Stream,
    deflate,
    first_bytes,
    unpacked,
    zstd,
)
from trace_sql.errors import BadInputError
from trace_sql.formats import HEAD_BYTES

if TYPE_CHECKING:
    import tarfile
    import zipfile

_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_ZIP_ZSTD = 93
_TAR_MARK = slice(257, 262)
_TAR_SIZES = slice(124, 136)
_LINK = "a link inside the archive"


class Member(NamedTuple):
    """A file in an archive; `open` gives its bytes as they were put in, `size` how many."""

    name: str
    size: int
    open: Callable[[], Stream]
    reason: str | None = None
    """Why it is not read."""


def is_archive(path: Path) -> bool:
    """Say whether a file is a zip or tar archive, by its first bytes."""
    with closing(FileBytes(path)) as stored:
        head = first_bytes(stored, 512)
    if head.startswith((_ZIP, _EMPTY_ZIP)):
        return True
    with closing(_text(path)) as text:
        return _is_tar(first_bytes(text, 512))


def members(path: Path) -> Generator[Member, None, None]:
    """Yield the files in an archive, in order; the second of one name is called NAME#2.

    Raises BadInputError where the list of members is cut or damaged; those before come first.
    """
    with closing(FileBytes(path)) as stored:
        is_zip = first_bytes(stored, 4) in (_ZIP, _EMPTY_ZIP)
    seen: dict[str, int] = {}
    for member in _zip_members(path) if is_zip else _tar_members(path):
        count = seen[member.name] = seen.get(member.name, 0) + 1
        name = member.name if count == 1 else f"{member.name}#{count}"
        yield Member(name, member.size, member.open, member.reason or _bad_name(member.name))


def find(path: Path, name: str) -> Member:
    """Return the member `name` of an archive; raises BadInputError where it has none."""
    with closing(members(path)) as listed:
        for member in listed:
            if member.name == name:
                if member.reason:
                    raise BadInputError(f"{path}!{name}: {member.reason}; unpack the archive")
                return member
    raise BadInputError(f"{path}: no file {name!r} in this archive; `ingest` lists what it holds")


def located(path: Path, member: str | None = None) -> tuple[Callable[[], Stream], int]:
    """Return what opens the bytes of a file or of a member, as stored, and how many they are."""
    if member is not None:
        found = find(path, member)
        return found.open, found.size
    with closing(FileBytes(path)) as stored:
        return lambda: FileBytes(path), stored.size


def head_of(open_stored: Callable[[], Stream], size: int, label: str) -> bytes:
    """Return the first HEAD_BYTES of the text that a stream holds, fewer where it is shorter."""
    with closing(unpacked(open_stored(), open_stored, size, label)) as text:
        return first_bytes(text, HEAD_BYTES)


def looks_packed(head: bytes) -> bool:
    """Say whether a text that begins with `head` is an archive: one inside another is not read."""
    return head.startswith((_ZIP, _EMPTY_ZIP)) or _is_tar(head)


def _is_tar(head: bytes) -> bool:
    return head[_TAR_MARK] == b"ustar" and not head[_TAR_SIZES].strip(b"01234567 \0")


def _bad_name(name: str) -> str | None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        return "a path that leads out of the archive"
    return None


def _zip_members(path: Path) -> Iterator[Member]:
    import zipfile

    broken = ""
    try:
        with zipfile.ZipFile(path) as archive:
            listed: Iterable[zipfile.ZipInfo] = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        # The directory stands at the end; what is in front of each member tells the same.
        broken = f"{path}: the zip archive is cut or damaged; copy it again"
        listed = _scanned_zip(path)
    for info in listed:
        if info.is_dir():
            continue
        mode = info.external_attr >> 16
        reason = None
        if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            reason = _LINK if stat.S_ISLNK(mode) else "no regular file"
        elif info.flag_bits & 1:
            reason = "encrypted"
        elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZIP_ZSTD):
            reason = f"compressed in a way that is not read here (method {info.compress_type})"
        yield Member(info.filename, info.file_size, _zip_opener(path, info), reason)
    if broken:
        raise BadInputError(broken)


def _scanned_zip(path: Path) -> Iterator[zipfile.ZipInfo]:
    """Yield the members of a zip archive without a directory, as long as lengths are known."""
    import zipfile

    offset = 0
    while True:
        with closing(FileBytes(path, offset)) as stored:
            header = first_bytes(stored, 30)
            if len(header) < 30 or not header.startswith(_ZIP):
                return
            name_size, extra_size = struct.unpack_from("<HH", header, 26)
            name = first_bytes(stored, name_size).decode("utf-8", "replace")
        info = zipfile.ZipInfo(name)
        info.header_offset = offset
        info.flag_bits, info.compress_type = struct.unpack_from("<HH", header, 6)
        info.CRC, info.compress_size, info.file_size = struct.unpack_from("<III", header, 14)
        # Behind the member, or in a longer field: what writes traces does neither.
        if info.flag_bits & 8 or info.compress_size == 0xFFFFFFFF:
            return
        yield info
        offset += 30 + name_size + extra_size + info.compress_size


def _zip_opener(path: Path, info: zipfile.ZipInfo) -> Callable[[], Stream]:
    def stored() -> Stream:
        with closing(FileBytes(path, info.header_offset)) as header:
            fields = first_bytes(header, 30)
        # The lengths of name and extra field may differ from those in the directory.
        skip = (
            30 + int.from_bytes(fields[26:28], "little") + int.from_bytes(fields[28:30], "little")
        )
        return Section(FileBytes(path, info.header_offset + skip), 0, info.compress_size)

    def opened() -> Stream:
        content = stored()
        if info.compress_type:
            codec = deflate() if info.compress_type == 8 else zstd()
            label = f"{path}!{info.filename}"
            content = Decoded(codec, content, stored, info.compress_size, label)
        return _Checked(content, info.file_size, info.CRC)

    return opened


class _Checked:
    """A stream whose length and checksum are known."""

    def __init__(self, stream: Stream, size: int, crc: int) -> None:
        self._stream = stream
        self._left = size
        self._expected = crc
        self._crc = 0
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._crc = zlib.crc32(data, self._crc)
        self._left -= len(data)
        if not data:
            self.damage = self._stream.damage
            if not self.damage and (self._left or self._crc != self._expected):
                self.damage = "the checksum in the zip archive does not match"
        return data

    def close(self) -> None:
        self._stream.close()


def _tar_members(path: Path) -> Iterator[Member]:
    import tarfile

    stream = _text(path)
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=DECODED_BYTES) as archive:  # type: ignore[call-overload]
            while (info := archive.next()) is not None:
                # It would keep them all.
                archive.members = []
                if not info.isdir():
                    yield Member(info.name, info.size, _tar_opener(path, info), _tar_reason(info))
        broken = stream.damage
    except (tarfile.TarError, EOFError, ValueError) as error:
        broken = stream.damage or str(error)
    finally:
        stream.close()
    if broken:
        raise BadInputError(f"{path}: the tar archive is cut or damaged ({broken}); copy it again")


def _tar_reason(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return _LINK
    if info.issparse():
        return "a sparse file"
    return None if info.isreg() else "no regular file"


def _tar_opener(path: Path, info: tarfile.TarInfo) -> Callable[[], Stream]:
    return lambda: Section(_text(path), info.offset_data, info.size)


def _text(path: Path) -> Stream:
    """Return the text of a file, unpacked where it is compressed."""
    stored = FileBytes(path)
    return unpacked(stored, lambda: FileBytes(path), stored.size, str(path))
