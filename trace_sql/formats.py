"""What a file is that is no JSON trace, told by its first bytes, and how to get a trace from it."""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD_BYTES = 64 << 10
"""First bytes of a text that `recognise` is best given."""

_RECORD = "record the run with torch.profiler and give its .json or .json.gz"
# Patterns are compiled when they are used: most commands do not.
_JSON = rb"\s*(?:\{\s*(?:[\"}]|$)|\[\s*(?:[\[{\]]|$))"
_PLANE = rb"(?s)(?:\x08[\x80-\xff]*[\0-\x7f])?\x12.(?:/host:|/device:|Task Environment)"
"""How a plane of XLA begins: its id, which may be left out, and its name."""
_TEXT = rb"[\t\n\r\x0c\x1b -~\x80-\xff]*"


class Foreign(NamedTuple):
    what: str
    advice: str = "give a JSON trace as torch.profiler writes it"
    text: bool = False
    """Text that nothing is known of: a trace whose beginning is lost would look like it."""

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}"


_BY_MAGIC: tuple[tuple[bytes, Foreign], ...] = (
    (b"PAR1", Foreign("a Parquet file", "give the trace that it was made from")),
    (b"ARROW1", Foreign("an Arrow file", "give the trace that it was made from")),
    (b"\x89HDF", Foreign("an HDF5 file", _RECORD)),
    (b"\x7fELF", Foreign("a program or library (ELF)")),
    (b"MZ", Foreign("a Windows program")),
    (b"\x89PNG", Foreign("a PNG image")),
    (b"\xff\xd8\xff", Foreign("a JPEG image")),
    (b"GIF8", Foreign("a GIF image")),
    (b"%PDF", Foreign("a PDF document")),
    (b"\x93NUMPY", Foreign("a NumPy array")),
    (b"GGUF", Foreign("model weights (GGUF)")),
    (b"NVR\0", Foreign("an Nsight Compute report", _RECORD)),
    (b"\x10\x00\x04\x46\x78\x54\x16\x00", Foreign("a Fuchsia trace", _RECORD)),
    (b"\xfd7zXZ\0", Foreign("an xz file", "unpack it with `xz -d`")),
    (b"BZh", Foreign("a bzip2 file", "unpack it with `bunzip2`")),
    (b"\x04\x22\x4d\x18", Foreign("an lz4 file", "unpack it with `lz4 -d`")),
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", "unpack it with `7z x`")),
    (b"Rar!", Foreign("a RAR archive", "unpack it with `unrar x`")),
    (b"\xff\xfe", Foreign("UTF-16 text", "convert it with `iconv -f UTF-16 -t UTF-8`")),
    (b"\xfe\xff", Foreign("UTF-16 text", "convert it with `iconv -f UTF-16 -t UTF-8`")),
    (b"version https://git-lfs", Foreign("a pointer of Git LFS", "fetch the file: `git lfs pull`")),
)
_BY_ENDING: tuple[tuple[tuple[str, ...], Foreign], ...] = (
    ((".nsys-rep", ".qdrep", ".qdstrm"), Foreign("an Nsight Systems report", _RECORD)),
    ((".ncu-rep",), Foreign("an Nsight Compute report", _RECORD)),
)
_PERFETTO = Foreign(
    "a Perfetto trace (protobuf)",
    "convert it with `traceconv json IN OUT.json` (get.perfetto.dev/traceconv), or let"
    " export_chrome_trace write a .json",
)
_XPLANE = Foreign(
    "an XSpace profile of JAX or TensorFlow (xplane.pb)",
    "give the .trace.json.gz that stands beside it, or record with create_perfetto_trace=True",
)


def recognise(head: bytes, name: str = "") -> Foreign | None:
    """Return what a file is whose text begins with `head`, None where it may be a JSON trace.

    `name` is the file's name; it decides only about formats without a mark of their own.
    """
    body = head.removeprefix(b"\xef\xbb\xbf")
    if not body.strip() or re.match(_JSON, body):
        return None
    for magic, foreign in _BY_MAGIC:
        if head.startswith(magic):
            return foreign
    for endings, foreign in _BY_ENDING:
        if name.endswith(endings):
            return foreign
    if head.startswith(b"SQLite format 3\0"):
        return _sqlite(head)
    if not head.strip(b"\0"):
        return Foreign("nothing but zero bytes", "its writer died or its disk was full")
    if re.match(rb"\x80[\x02-\x05]", head):
        return Foreign("a Python pickle")
    if re.match(rb".{5}\0\0\0\{\"", head, re.DOTALL):
        return Foreign("model weights (safetensors)")
    return _protobuf(head, name) or _text(body) or _unknown(head)


def _sqlite(head: bytes) -> Foreign:
    if b"rocpd_" in head:
        return Foreign("an SQLite database of rocprofv3 (rocpd)", _RECORD)
    if b"CUPTI_ACTIVITY" in head or b"TARGET_INFO" in head:
        return Foreign("an SQLite export of Nsight Systems", _RECORD)
    return Foreign("an SQLite database", _RECORD)


def _protobuf(head: bytes, name: str) -> Foreign | None:
    """Tell Perfetto's and XLA's traces: both are a row of messages that are field number 1."""
    if not head.startswith(b"\n"):
        return None
    message = _message(head, 0)
    if message is None:
        return None
    size, start = message
    content = head[start : start + size]
    at = start + size
    if re.match(_PLANE, content) or name.endswith(".xplane.pb"):
        return _XPLANE
    follows = at >= len(head) or head[at : at + 1] == b"\n"
    binary = re.fullmatch(_TEXT, head[:4096]) is None
    return _PERFETTO if follows and binary else None


def _message(head: bytes, at: int) -> tuple[int, int] | None:
    """Return the length of the message whose tag stands at `at`, and where it begins."""
    size = shift = 0
    for place in range(at + 1, min(at + 6, len(head))):
        size |= (head[place] & 0x7F) << shift
        shift += 7
        if head[place] < 0x80:
            return size, place + 1
    return None


def _text(body: bytes) -> Foreign | None:
    # A character that the end of the head cuts is text, too.
    text = body[:4096]
    if re.fullmatch(_TEXT, text) is None:
        return None
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if error.start < len(text) - 4:
            return None
    start = text.lstrip()[:64].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return Foreign("an HTML page", "give the trace that it shows")
    if start.startswith(b"<?xml"):
        return Foreign("an XML file")
    return Foreign("plain text, no JSON object or list", text=True)


def _unknown(head: bytes) -> Foreign:
    return Foreign(f"no format that is known here (first bytes {head[:8].hex(' ')})")
