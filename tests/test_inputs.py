"""Files, folders and archives: what is taken as what, what is skipped and why."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from folders import folder, of_rank, trace

from trace_sql.errors import BadInputError, ExitCode, UsageError
from trace_sql.inputs import expand, single, trace_name


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a.json", "a"),
        ("a.json.gz", "a"),
        ("a.json.zst", "a"),
        ("a.trace.json.gz", "a"),
        ("a.json.tmp", "a"),
        ("host_1.170.pt.trace.json", "host_1.170"),
        ("a.pt", "a"),
        ("a.b", "a.b"),
        (".json", ".json"),
    ],
)
def test_trace_name(file_name: str, name: str) -> None:
    assert trace_name(Path("folder") / file_name) == name
    assert trace_name(Path("all.zip"), f"folder/{file_name}") == name


# What is taken.


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    root = folder(
        tmp_path,
        {
            "b/z.json": trace(),
            "b/c/no_ending": trace(2),
            "b/packed.log": gzip.compress(trace(3)),
            "b/notes.txt": b"words",
            "b/[log].txt": b"[INFO] started",
            "b/empty.json": b"",
            "b/model.pt": b"\x80\x02}.",
            "b/._z.json": trace(),
            "b/.git/config": b"",
            "odd.txt": trace(4),
        },
    )
    found = expand([root / "b", root / "b" / "z.json", root / "odd.txt", root / "odd.txt"])
    taken = [one.path.relative_to(root).as_posix() for one in found.inputs]
    assert taken == ["b/c/no_ending", "b/packed.log", "b/z.json", "odd.txt"]
    assert [one.named for one in found.inputs] == [False, False, False, True]
    assert found.errors == []
    text = "plain text, no JSON object or list"
    reasons = {Path(one.label).name: one.reason for one in found.skipped}
    assert reasons == {
        "notes.txt": text,
        "[log].txt": text,
        "empty.json": "empty file",
        "model.pt": "a Python pickle; give a JSON trace as torch.profiler writes it",
        "._z.json": "hidden file",
        ".git": "hidden folder",
    }
    with pytest.raises(UsageError, match="missing: no such file"):
        expand([root / "missing"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_links_and_files_that_are_none(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"b.json": trace(), "d/e.json": trace(2)})
    folder(tmp_path / "out", {"far.json": trace(3)})
    os.mkfifo(root / "pipe")
    (root / "a_link.json").symlink_to(root / "b.json")
    (root / "gone").symlink_to(root / "nowhere")
    (root / "round").symlink_to(root / "round")
    (root / "zero").symlink_to("/dev/zero")
    (root / "d" / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "out")
    os.link(root / "b.json", root / "z_hard.json")
    found = expand([root])
    # A file is taken where it is, and what stands elsewhere by its link.
    taken = [one.path.relative_to(root).as_posix() for one in found.inputs]
    assert taken == ["b.json", "d/e.json", "out/far.json"]
    reasons = {Path(one.label).name: one.reason for one in found.skipped}
    assert reasons.pop("gone").startswith("a link that leads nowhere")
    assert reasons.pop("round").startswith("a link that leads nowhere")
    assert reasons == {
        "pipe": "a pipe",
        "zero": "a device",
        "a_link.json": "the same file as b.json",
        "z_hard.json": "the same file as b.json",
        "loop": "a link to a folder that is read already",
    }
    named = expand([root / "pipe", root / "zero"])
    assert [str(error) for error in named.errors] == [
        f"{root}/pipe: a pipe; give a regular file",
        f"{root}/zero: a device; give a regular file",
    ]


def test_a_folder_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path, {"a.json": trace(), "closed/b.json": trace(2)})
    scan = os.scandir

    def refuse(path: Path) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("trace_sql.inputs.os.scandir", refuse)
    found = expand([root])
    assert [one.path.name for one in found.inputs] == ["a.json"]
    (skipped,) = found.skipped
    assert skipped.reason == "a folder that cannot be opened (Permission denied)"


def test_archives_in_folders_and_named(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", {"a.json": trace()})
    with zipfile.ZipFile(root / "ranks.zip", "w") as archive:
        archive.writestr("run/rank0_trace.json.gz", gzip.compress(of_rank(0)))
        archive.writestr("run/notes.txt", "words")
        archive.writestr("run/inner.zip", b"PK\x03\x04" + bytes(30))
    with zipfile.ZipFile(root / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    zipped = root / "ranks.zip"
    found = expand([root])
    assert [(one.path.name, one.member) for one in found.inputs] == [
        ("a.json", None),
        ("ranks.zip", "run/rank0_trace.json.gz"),
    ]
    assert {Path(one.label).name: one.reason for one in found.skipped} == {
        "model.pt": "a file of torch.save",
        "notes.txt": "plain text, no JSON object or list",
        "inner.zip": "an archive inside an archive",
    }
    assert [one.member for one in expand([zipped]).inputs] == ["run/rank0_trace.json.gz"]
    one = single(Path(f"{zipped}!run/rank0_trace.json.gz"))
    assert (one.path, one.member, one.named) == (zipped, "run/rank0_trace.json.gz", True)
    assert single(zipped).label == f"{zipped}!run/rank0_trace.json.gz"
    with pytest.raises(BadInputError, match=r"model\.pt: a file of torch\.save"):
        single(root / "model.pt")
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("rank1_trace.json", of_rank(1))
    with pytest.raises(UsageError, match="holds 2 traces, name one: .*!rank1_trace.json"):
        single(zipped)


def test_a_cut_archive_is_an_error_and_gives_what_it_can(tmp_path: Path) -> None:
    packed = tmp_path / "a.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}.json", trace(99, number=number))
    packed.write_bytes(packed.read_bytes()[:-300])
    found = expand([tmp_path])
    assert [one.member for one in found.inputs] == ["0.json", "1.json", "2.json"]
    assert [str(error) for error in found.errors] == [
        f"{packed}: the zip archive is cut or damaged; copy it again"
    ]


def test_members_become_traces(tmp_path: Path) -> None:
    packed = tmp_path / "ranks.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("run/7-TP-0.trace.json", trace(1))
        archive.writestr("run/7-TP-1.trace.json.gz", gzip.compress(trace(2)))
    done = command(tmp_path / "store", "ingest", packed, "--format", "json")
    assert done.exit_code == ExitCode.OK, done.stderr
    found = json.loads(done.stdout)
    assert [(row["name"], row["rank"], row["rank_source"]) for row in found] == [
        ("7-TP-0", 0, "name"),
        ("7-TP-1", 1, "name"),
    ]
    assert found[1]["path"] == f"{packed}!run/7-TP-1.trace.json.gz"
    # The same bytes outside are the same trace.
    alone = tmp_path / "7-TP-1.trace.json.gz"
    alone.write_bytes(zipfile.ZipFile(packed).read("run/7-TP-1.trace.json.gz"))
    (again,) = json.loads(command(tmp_path / "store", "ingest", alone, "--format", "json").stdout)
    assert (again["trace_id"], again["state"]) == (found[1]["trace_id"], "already stored")


def test_any_command_takes_a_member(tmp_path: Path) -> None:
    packed = tmp_path / "ranks.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes.txt", "words")
        archive.writestr("run/0.json", trace(3))
    for word in (packed, f"{packed}!run/0.json"):
        done = command(tmp_path / "store", "categories", word, "--format", "json")
        assert done.exit_code == ExitCode.OK, done.stderr
        assert '"other"' in done.stdout
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("run/1.json", trace(4))
    several = command(tmp_path / "store", "categories", packed)
    assert several.exit_code == ExitCode.USAGE
    assert "!run/0.json" in several.stderr and "!run/1.json" in several.stderr
