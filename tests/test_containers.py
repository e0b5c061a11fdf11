"""What trace files are packed in: told by content, read up to the damage, refused by name."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_sql import byte_streams
from trace_sql.container import members
from trace_sql.errors import BadInputError, NotATraceError
from trace_sql.formats import Foreign, recognise
from trace_sql.source import CHUNK_BYTES, Source, content_hash

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = (
    b'{"traceEvents":['
    + b",".join(b'{"ph":"X","name":"k%d","ts":%d.5}' % (i * i % 97, i) for i in range(40_000))
    + b"]}"
)
GZIP = gzip.compress(TEXT, 6)
ZSTD = zstd.compress(TEXT, options={zstd.CompressionParameter.checksum_flag: 1})
SMALL = TEXT[:3000]
SMALL_GZIP = gzip.compress(SMALL)
SMALL_ZSTD = zstd.compress(SMALL, options={zstd.CompressionParameter.checksum_flag: 1})


def read(
    path: Path, member: str | None = None, size: int = CHUNK_BYTES
) -> tuple[bytes, str | None]:
    """Return the text of a source and its damage; the hash must be that of all stored bytes."""
    source = Source(path, member)
    try:
        parts = []
        while part := source.read(size):
            assert len(part) <= size
            parts.append(part)
        text = b"".join(parts)
        assert source.raw_bytes == len(text)
        assert source.content_hash == content_hash(path, member)
        return text, source.damage
    finally:
        source.close()


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


def decodable(data: bytes) -> bytes:
    """What zlib makes of one gzip member, fed byte by byte."""
    decoder = zlib.decompressobj(31)
    out = b""
    try:
        for at in range(len(data)):
            out += decoder.decompress(data[at : at + 1])
    except zlib.error:
        pass
    return out


def _words(value: object) -> str:
    """Name a test by its words; compressed bytes say nothing, and change with the time."""
    return value if isinstance(value, str) else ""


HALF = len(TEXT) // 2
WHOLE = {
    "plain": TEXT,
    "gzip": GZIP,
    "members": gzip.compress(TEXT[:HALF]) + gzip.compress(b"") + gzip.compress(TEXT[HALF:]),
    "small members": b"".join(
        gzip.compress(TEXT[at : at + 9973]) for at in range(0, len(TEXT), 9973)
    ),
    "zeros behind": GZIP + bytes(700),
    "zeros between": gzip.compress(TEXT[:HALF]) + bytes(300_000) + gzip.compress(TEXT[HALF:]),
    "zstd": ZSTD,
    "frames": zstd.compress(TEXT[:HALF])
    + b"\x52\x2a\x4d\x18\x03\0\0\0abc"
    + zstd.compress(TEXT[HALF:]),
}


@pytest.mark.parametrize("size", [CHUNK_BYTES, 1000])
@pytest.mark.parametrize("kind", WHOLE)
def test_packed_text_is_read_whole(kind: str, size: int, tmp_path: Path) -> None:
    # The name says nothing.
    assert read(written(tmp_path / "a.log", WHOLE[kind]), size=size) == (TEXT, None)


@pytest.mark.parametrize("packed", [GZIP, ZSTD], ids=["gzip", "zstd"])
def test_progress_counts_stored_bytes(packed: bytes, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    source = Source(
        written(tmp_path / "a", packed), progress=lambda done, total: calls.append((done, total))
    )
    while source.read():
        pass
    source.close()
    assert calls[-1] == (len(packed), len(packed))
    assert source.file_bytes == len(packed)


@settings(max_examples=40)
@given(cut=st.integers(10, len(SMALL_GZIP) - 1))
def test_a_cut_gzip_gives_all_that_can_be_decoded(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("cut") / "a.gz", SMALL_GZIP[:cut])
    assert read(path) == (decodable(SMALL_GZIP[:cut]), "the gzip stream ends early")


@settings(max_examples=40)
@given(at=st.integers(10, len(SMALL_GZIP) - 1))
def test_a_damaged_gzip_gives_all_before_the_damage(
    at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = flipped(SMALL_GZIP, at)
    text, damage = read(written(tmp_path_factory.mktemp("bad") / "a.gz", data))
    assert damage is not None
    expected = decodable(data)
    # Decoders may stop a symbol apart, and zlib refuses some tables that isal reads.
    assert os.path.commonprefix([text, expected]) in (text, expected)
    assert len(text) > len(expected) - 259


@pytest.mark.parametrize("keep", [len(GZIP) // 3, len(GZIP) * 2 // 3, len(GZIP) - 3])
def test_a_long_gzip_cut(keep: int, tmp_path: Path) -> None:
    text, damage = read(written(tmp_path / "a.gz", GZIP[:keep]))
    assert text == zlib.decompressobj(31).decompress(GZIP[:keep])
    assert damage == "the gzip stream ends early"


def test_damage_behind_good_members(tmp_path: Path) -> None:
    bad = gzip.compress(TEXT[HALF:])
    # A block of a type that does not exist.
    bad = bad[:10] + bytes([bad[10] | 6]) + bad[11:]
    text, damage = read(written(tmp_path / "a.gz", gzip.compress(TEXT[:HALF]) + bad))
    assert text == TEXT[:HALF]
    assert damage is not None and damage.startswith("the gzip stream is damaged (")
    assert "Error" not in damage


def test_blocks_before_the_damage_are_kept_to_the_byte(tmp_path: Path) -> None:
    # Blocks of bytes as they are; the length of the last contradicts itself.
    blocks = [TEXT[at : at + 50_000] for at in range(0, len(TEXT), 50_000)]
    data = gzip.compress(b"")[:10] + b"".join(
        b"\0" + struct.pack("<HH", len(block), len(block) ^ (0xFFFF if at else 0xFFFE)) + block
        for at, block in zip(range(len(blocks) - 1, -1, -1), blocks, strict=True)
    )
    text, damage = read(written(tmp_path / "a.gz", data))
    assert text == b"".join(blocks[:-1])
    assert damage is not None and "damaged" in damage


@pytest.mark.parametrize(
    ("data", "damage"),
    [
        (GZIP + b"garbage", "bytes that are not gzip follow the gzip stream"),
        (GZIP + bytes(9) + b"\x1f", "bytes that are not gzip follow the gzip stream"),
        (ZSTD + b"xy" * 50, "bytes that are not zstd follow the zstd stream"),
        (flipped(GZIP, len(GZIP) - 6), "the checksum of the gzip stream does not match"),
        (flipped(GZIP, len(GZIP) - 2), "the checksum of the gzip stream does not match"),
        (GZIP[:-1], "the gzip stream ends early"),
        (flipped(ZSTD, len(ZSTD) - 1), "the checksum of the zstd stream does not match"),
        (ZSTD[:-1], "the zstd stream ends early"),
    ],
    ids=_words,
)
def test_damage_behind_the_text_loses_none_of_it(data: bytes, damage: str, tmp_path: Path) -> None:
    assert read(written(tmp_path / "a", data)) == (TEXT, damage)


@settings(max_examples=40)
@given(cut=st.integers(8, len(SMALL_ZSTD) - 1))
def test_a_cut_zstd_gives_whole_blocks(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("cut") / "a.zst", SMALL_ZSTD[:cut])
    text, damage = read(path)
    assert SMALL.startswith(text)
    assert damage == "the zstd stream ends early"


def test_a_damaged_zstd_gives_the_blocks_before(tmp_path: Path) -> None:
    frames = zstd.compress(TEXT[:HALF]) + flipped(zstd.compress(TEXT[HALF:]), 20)
    text, damage = read(written(tmp_path / "a.zst", frames))
    assert text.startswith(TEXT[:HALF]) and TEXT.startswith(text)
    assert damage is not None and damage.startswith("the zstd stream is damaged (")


def test_a_zstd_window_beyond_memory_is_named(tmp_path: Path) -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 30})
    path = written(tmp_path / "a.zst", packer.compress(TEXT) + packer.flush())
    text, damage = read(path)
    assert text == b""
    assert damage is not None and "--long=31" in damage


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_bomb_is_refused(pack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_streams, "FREE_BYTES", 1 << 20)
    assert callable(pack)
    path = written(tmp_path / "a.json.gz", pack(b'{"traceEvents":[' + b" " * (4 << 20)))
    with pytest.raises(
        BadInputError, match=r"a\.json\.gz: \d+ bytes unpack to more than 250 times"
    ):
        read(path)
    # As much text that is worth its bytes is none.
    even = b'{"traceEvents":[' + os.urandom(2 << 20).hex().encode()
    assert read(written(tmp_path / "b", pack(even))) == (even, None)


FILES = {
    "run/rank0.json": TEXT,
    "run/rank1.json.gz": GZIP,
    "z.json.zst": ZSTD,
    f"{'n' * 150}.json": TEXT,
    "empty": b"",
}
ARCHIVES = {
    "zip": zipped(FILES),
    "stored zip": zipped(FILES, zipfile.ZIP_STORED),
    "tar": tar(FILES),
    "tar.gz": gzip.compress(tar(FILES)),
    "tar.zst": zstd.compress(tar(FILES)),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_members_are_read_where_they_are(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / "archive", ARCHIVES[kind])
    listed = [(member.name, member.size, member.reason) for member in members(path)]
    assert listed == [(name, len(data), None) for name, data in FILES.items()]
    for name in list(FILES)[:-1]:
        assert read(path, name) == (TEXT, None)
    # A trace is known by its own bytes, wherever it is.
    assert content_hash(path, "run/rank1.json.gz") == content_hash(written(tmp_path / "b", GZIP))
    assert [entry.name for entry in tmp_path.iterdir()].count("run") == 0
    with pytest.raises(NotATraceError, match="archive: an archive"):
        read(path)
    with pytest.raises(BadInputError, match="archive: no file 'none' in this archive"):
        read(path, "none")


def test_members_of_one_name_are_told_apart(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for data in (b"[1]", b"[2]"):
            info = tarfile.TarInfo("a.json")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    path = written(tmp_path / "a.tar", out.getvalue())
    assert [read(path, member.name)[0] for member in members(path)] == [b"[1]", b"[2]"]


def test_members_that_are_not_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("to", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/hostname"
            archive.addfile(info)
        fifo = tarfile.TarInfo("fifo")
        fifo.type = tarfile.FIFOTYPE
        archive.addfile(fifo)
        for name in ("/abs.json", "../up.json", "a/../../up.json"):
            archive.addfile(tarfile.TarInfo(name))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    reasons = {m.name: m.reason for m in members(written(tmp_path / "a.tar", out.getvalue()))}
    link, leads_out = "a link inside the archive", "a path that leads out of the archive"
    assert reasons == {
        "to": link,
        "hard": link,
        "fifo": "no regular file",
        "/abs.json": leads_out,
        "../up.json": leads_out,
        "a/../../up.json": leads_out,
    }

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        info_link = zipfile.ZipInfo("to")
        info_link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(info_link, "/etc/hostname")
        packed.writestr("../up.json", "{}")
        packed.writestr("b.json", "{}" * 99, zipfile.ZIP_BZIP2)
        packed.mkdir("folder")
    reasons = {member.name: member.reason for member in members(tmp_path / "a.zip")}
    assert reasons == {
        "to": link,
        "../up.json": leads_out,
        "b.json": "compressed in a way that is not read here (method 12)",
    }
    with pytest.raises(BadInputError, match=r"a\.zip!to: a link inside the archive"):
        read(tmp_path / "a.zip", "to")


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_cut_archive_gives_the_members_before(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / "archive", ARCHIVES[kind][: len(ARCHIVES[kind]) * 9 // 10])
    found = []
    with pytest.raises(BadInputError, match="archive: the (zip|tar) archive is cut or damaged"):
        for member in members(path):
            found.append(member.name)
    assert found == list(FILES)[: len(found)] and len(found) > 2
    assert read(path, found[0]) == (TEXT, None)
    text, damage = read(path, found[-1])
    assert TEXT.startswith(text)
    assert damage is None or "ends" in damage


def test_a_damaged_member_of_a_zip(tmp_path: Path) -> None:
    data = zipped({"a.json": TEXT}, zipfile.ZIP_STORED)
    text, damage = read(written(tmp_path / "a.zip", flipped(data, 5000)), "a.json")
    assert (len(text), damage) == (len(TEXT), "the checksum in the zip archive does not match")


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(content: bytes) -> bytes:
    return b"\n" + varint(len(content)) + content


PERFETTO = message(b"\x40\x80\x80\x01\x50\x01\xe2\x03\x00" * 20) * 30
XPLANE = message(b"\x08\x01\x12\x09/host:CPU" + b"\x1a\x00\x00" * 300)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pftrace", PERFETTO, ["Perfetto", "traceconv json"]),
        ("a.json", PERFETTO, ["Perfetto", "traceconv json"]),
        ("a.json.gz", gzip.compress(PERFETTO), ["Perfetto", "traceconv json"]),
        ("a.pb", message(b"\x0a" * 123) + PERFETTO, ["Perfetto"]),
        ("host.xplane.pb", XPLANE, ["XSpace", "xplane.pb"]),
        ("a.pb", XPLANE, ["XSpace"]),
        ("a.nsys-rep", bytes(range(256)), ["Nsight Systems", "torch.profiler"]),
        (
            "a.sqlite",
            b"SQLite format 3\0" + bytes(99) + b"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL",
            ["Nsight Systems"],
        ),
        ("a.db", b"SQLite format 3\0" + bytes(99) + b"rocpd_string", ["rocprofv3"]),
        ("a.db", b"SQLite format 3\0" + bytes(99), ["SQLite", "torch.profiler"]),
        ("a.pt", b"\x80\x02}q\0.", ["pickle"]),
        ("a.parquet", b"PAR1\x15\x04", ["Parquet"]),
        ("a.so", b"\x7fELF\x02\x01", ["ELF"]),
        ("a.png", b"\x89PNG\r\n\x1a\n", ["PNG"]),
        ("a.npy", b"\x93NUMPY\x01\0", ["NumPy"]),
        ("a.safetensors", (300).to_bytes(8, "little") + b'{"__metadata__":{}}', ["safetensors"]),
        ("a.json.xz", b"\xfd7zXZ\0\0\4", ["xz -d"]),
        ("a.json.bz2", b"BZh91AY&SY", ["bunzip2"]),
        ("a.html", b"<!DOCTYPE html>\n<html>", ["HTML"]),
        ("a.json", '{"traceEvents": []}'.encode("utf-16"), ["UTF-16", "iconv"]),
        ("a.json", b"version https://git-lfs.github.com/spec/v1\n", ["git lfs pull"]),
        ("a.json", bytes(4096), ["zero bytes"]),
        ("a.bin", b"\x01\x02\xfe\xff\x00\x00\x00\x99\x98", ["first bytes 01 02 fe ff 00 00 00 99"]),
    ],
    ids=_words,
)
def test_other_formats_are_named(name: str, data: bytes, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(NotATraceError) as caught:
        Source(written(tmp_path / name, data))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name)) and "\n" not in message
    assert ";" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'\n {"a"',
        b"[]",
        b"[\n",
        b"[ {",
        b"\xef\xbb\xbf{}",
        b"",
        b"  \n",
        b'\n{"traceEvents"',
    ],
)
def test_what_may_be_a_trace(text: bytes) -> None:
    assert recognise(text) is None
    assert recognise(text, "a.nsys-rep") is None


@pytest.mark.parametrize(
    "text",
    [b"words", b"[INFO] started", b"[2026-01-01] x", b"a,b\n1,2\n", "käse".encode(), b"{'a'"],
)
def test_plain_text(text: bytes) -> None:
    found = recognise(text)
    assert isinstance(found, Foreign) and found.text


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, what in (("pipe", "a pipe"), ("zero", "a device"), (".", "a folder")):
        with pytest.raises(BadInputError, match=f"{what}; give a regular file"):
            Source(tmp_path / name)
    with pytest.raises(BadInputError, match="cannot be opened"):
        Source(tmp_path / "missing")
