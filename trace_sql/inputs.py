"""Which traces the paths of a command line mean, and what those traces are called."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trace_sql.byte_streams import FileBytes, Stream, irregular
from trace_sql.container import head_of, is_archive, looks_packed, members
from trace_sql.errors import BadInputError, TraceSqlError, UsageError
from trace_sql.formats import recognise
from trace_sql.safe_text import utf8
from trace_sql.source import label

_SUFFIXES = (".tmp", ".gz", ".zst", ".json", ".trace", ".pt")
_JSON_NAME = r"\.json(\.gz|\.zst)?$"


class Input(NamedTuple):
    """A file, or a `member` of an archive, that may be a trace."""

    path: Path
    member: str | None = None
    size: int = 0
    """Bytes as stored."""
    named: bool = False
    """Named itself, so that it must be a trace; others are skipped where they are none."""

    @property
    def label(self) -> str:
        return label(self.path, self.member)


class Skipped(NamedTuple):
    label: str
    reason: str


class Expanded:
    """What was found in files and folders.

    `errors` has what was named, or found by its name or archive, and cannot be read.
    """

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.skipped: list[Skipped] = []
        self.errors: list[TraceSqlError] = []


def trace_name(path: Path, member: str | None = None) -> str:
    """Return the file name without .json, .json.gz and the profilers' .trace and .pt before it."""
    name = utf8(path.name if member is None else member.rpartition("/")[2])
    for suffix in _SUFFIXES:
        shorter = name.removesuffix(suffix)
        name = shorter or name
    return name


def expand(paths: Iterable[Path]) -> Expanded:
    """Return the traces that `paths` name, folders and archives searched at any depth.

    A file named itself is taken whatever it is. In folders and archives, what does not begin as
    a JSON trace does is listed with the reason it was left out. Each file comes once, those of
    a folder sorted by path. Raises UsageError for a path that does not exist.
    """
    found = Expanded()
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        if not path.exists():
            member = member_of(path)
            if member is None:
                raise UsageError(f"{path}: no such file or folder; check the path")
            found.inputs.append(member)
        elif path.is_dir():
            inside = Expanded()
            for inner, reason in _walked(path):
                _take(inner, inside, seen, reason, named=False)
            found.inputs.extend(sorted(inside.inputs, key=lambda one: one.path.parts))
            found.skipped.extend(sorted(inside.skipped, key=lambda one: Path(one.label).parts))
            found.errors.extend(inside.errors)
        else:
            _take(path, found, seen, None, named=True)
    return found


def single(path: Path) -> Input:
    """Return the one trace that a path names, which may be ARCHIVE!MEMBER.

    Raises UsageError where there are several, BadInputError where there is none.
    """
    found = expand([path])
    if found.errors:
        raise found.errors[0]
    if len(found.inputs) == 1:
        return found.inputs[0]
    listed = ", ".join(one.label for one in found.inputs[:20])
    raise UsageError(f"{path} holds {len(found.inputs)} traces, name one: {listed}")


def member_of(path: Path) -> Input | None:
    """Return what ARCHIVE!MEMBER names, None where there is no file ARCHIVE."""
    text = str(path)
    for mark in re.finditer("!", text):
        archive, member = Path(text[: mark.start()]), text[mark.end() :]
        if archive.is_file():
            return Input(archive.absolute(), member, named=True)
    return None


def _take(
    path: Path,
    found: Expanded,
    seen: dict[tuple[int, int], Path],
    reason: str | None,
    *,
    named: bool,
) -> None:
    """Sort one file into `found`, or the members of an archive."""
    path = path.absolute()
    if reason is None:
        try:
            status = path.stat()
            key = status.st_dev, status.st_ino
            if not stat.S_ISREG(status.st_mode):
                reason = irregular(status.st_mode)
            elif key in seen:
                # Named twice is meant once.
                if named or seen[key] == path:
                    return
                reason = f"the same file as {seen[key].name}"
            elif named and not is_archive(path):
                seen[key] = path
                found.inputs.append(Input(path, size=status.st_size, named=True))
                return
            else:
                seen[key] = path
                _look(path, status.st_size, found, named=named)
                return
        except OSError as error:
            reason = f"cannot be opened ({error.strerror})"
        except TraceSqlError as error:
            found.errors.append(error)
            return
    if named:
        found.errors.append(BadInputError(f"{path}: {reason}; give a regular file"))
    else:
        found.skipped.append(Skipped(str(path), reason))


def _look(path: Path, size: int, found: Expanded, *, named: bool) -> None:
    """Take a file of a folder, or the members of an archive, by their first bytes."""

    def stored() -> Stream:
        return FileBytes(path)

    head = head_of(stored, size, str(path))
    if not looks_packed(head):
        reason = _reason(head, size, path.name)
        if reason:
            found.skipped.append(Skipped(str(path), reason))
        else:
            found.inputs.append(Input(path, size=size))
        return
    taken, left = 0, []
    try:
        for member in members(path):
            reason = member.reason or _member_reason(path, member.name, member.size, member.open)
            if reason:
                left.append(Skipped(label(path, member.name), reason))
            else:
                found.inputs.append(Input(path, member.name, member.size))
                taken += 1
    except TraceSqlError as error:
        found.errors.append(error)
        taken += 1
    if not taken:
        what = "an archive without a trace in it"
        names = [one.label.rpartition("!")[2] for one in left]
        if any(name.endswith("data.pkl") for name in names):
            what = "a file of torch.save"
        if named:
            raise BadInputError(
                f"{path}: {what} ({len(left)} files); give a JSON trace as torch.profiler writes it"
            )
        left = [Skipped(str(path), what)]
    found.skipped.extend(left)


def _member_reason(path: Path, name: str, size: int, opened: Callable[[], Stream]) -> str | None:
    if name.rpartition("/")[2].startswith("."):
        return "hidden file"
    head = head_of(opened, size, label(path, name))
    if looks_packed(head):
        return "an archive inside an archive"
    return _reason(head, size, name)


def _reason(head: bytes, size: int, name: str) -> str | None:
    """Return why a file is no trace, None where that takes a reading."""
    if size == 0:
        return "empty file"
    foreign = recognise(head, name)
    if foreign is None:
        return None
    if foreign.text:
        # By its name it should be one, so a reader says what is wrong with it.
        return None if re.search(_JSON_NAME, name) else foreign.what
    return str(foreign)


def _walked(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield the files below `folder`, each with a reason to skip it or None.

    Links come after all that is no link, so that a file is taken where it is, and a folder that
    links lead to more than once is read once.
    """
    links: list[Path] = []
    entered: set[tuple[int, int]] = set()
    folders = [folder]
    while folders or links:
        at = folders.pop() if folders else links.pop(0)
        try:
            status = at.stat()
        except OSError as error:
            yield at, f"a link that leads nowhere ({error.strerror})"
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield at, None
            continue
        if (status.st_dev, status.st_ino) in entered:
            yield at, "a link to a folder that is read already"
            continue
        entered.add((status.st_dev, status.st_ino))
        try:
            with os.scandir(at) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield at, f"a folder that cannot be opened ({error.strerror})"
            continue
        for entry in listed:
            path = at / entry.name
            if entry.name.startswith("."):
                yield path, "hidden file" if entry.is_file() else "hidden folder"
            elif entry.is_symlink():
                links.append(path)
            elif entry.is_dir():
                folders.append(path)
            else:
                yield path, None
