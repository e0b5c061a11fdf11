"""What is kept of the package's own files: it is what they say, and goes when they change."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trace_sql import kept, plan, views
from trace_sql.resources import data_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for what is kept; nothing is known beforehand."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(kept, "_folders", lambda: [tmp_path / "kept"])
    monkeypatch.setattr(views, "load_views", views.load_views.__wrapped__)
    monkeypatch.setattr(plan, "fingerprint", plan.fingerprint.__wrapped__)
    return tmp_path / "kept"


@pytest.fixture
def copied(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of sql/ and profiles/ that is read in their place."""
    for name in ("sql", "profiles"):
        shutil.copytree(data_folder(name), tmp_path / "data" / name)
    for module in (views, plan):
        monkeypatch.setattr(module, "data_folder", lambda name: tmp_path / "data" / name)
    return tmp_path / "data"


def test_views_are_what_their_texts_say(folder: Path) -> None:
    worked_out, found = views.load_views(), views.load_views()
    assert len(list(folder.glob("views-*"))) == 1
    assert list(worked_out) == list(found)
    for view in found.values():
        code = re.sub(r"--.*", "", view.text)
        first = worked_out[view.name]
        assert (view.name, view.layer, view.text) == (first.name, first.layer, first.text)
        keep = re.findall(r"^-- keep: (\w+)$", view.text, re.MULTILINE)
        assert view.keep == first.keep == "".join(keep)
        marked = "{{" in view.text or "{%" in view.text
        assert view.is_template == first.is_template == marked
        words = re.findall(r"(?i)(?<!\w)(?:from|join)\s+([a-z_]\w*)", code)
        assert view.reads == first.reads == {word.lower() for word in words} - {view.name}


def test_a_changed_view_is_read_anew(copied: Path) -> None:
    assert views.load_views()["passes"].keep == "store"
    changed = copied / "sql" / "measure" / "passes.sql"
    changed.write_text("-- One row.\n-- grain: a\n--\n-- a  BIGINT  -  a\nselect a from other\n")
    view = views.load_views()["passes"]
    assert not view.keep
    assert view.reads == {"other"}
    changed.rename(copied / "sql" / "report" / "passes.sql")
    assert views.load_views()["passes"].layer == "report"
    (copied / "sql" / "report" / "passes.sql").unlink()
    assert "passes" not in views.load_views()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"7", b"[]", b"{}", b'{"a": 1}', b'["ab"]', b'[["a"]]', b'[["a", [1]]]'],
)
def test_a_damaged_index_is_worked_out_again(content: bytes, folder: Path) -> None:
    whole = list(views.load_views())
    key = plan.fingerprint()
    for file in folder.iterdir():
        file.write_bytes(content)
    assert list(views.load_views()) == whole
    assert plan.fingerprint() == key


def a_view(data: Path) -> None:
    with (data / "sql" / "window" / "blocks.sql").open("a") as file:
        file.write("-- a word\n")


def a_macro(data: Path) -> None:
    with (data / "sql" / "macros" / "finite.sql").open("a") as file:
        file.write("-- a word\n")


def a_profile(data: Path) -> None:
    (data / "profiles" / "new.toml").write_text('name = "new"\n')


@pytest.mark.parametrize("change", [a_view, a_macro, a_profile])
def test_results_have_another_key_when_a_file_changes(
    change: Callable[[Path], None], copied: Path
) -> None:
    first = plan.fingerprint()
    change(copied)
    assert plan.fingerprint() != first


def test_the_key_is_of_content_alone(copied: Path) -> None:
    first = plan.fingerprint()
    for path in copied.rglob("*.sql"):
        os.utime(path, ns=(1, 1))
    assert plan.fingerprint() == first
    assert len({json.dumps(file.read_text()) for file in copied.parent.glob("kept/content-*")}) == 1


def test_a_state_is_of_places_sizes_and_times(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "a.sql"
    file.write_text("one")
    states = [kept.state_of(tmp_path)]
    for text in ("two", "three"):
        # What sets back the time of its change does not hide it.
        before = file.stat()
        time.sleep(0.02)
        file.write_text(text)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.append(kept.state_of(tmp_path))
    file.rename(tmp_path / "inner" / "b.sql")
    states.append(kept.state_of(tmp_path))
    assert len(set(states)) == len(states)


def test_what_an_editor_leaves_is_no_file_of_ours(copied: Path) -> None:
    names, key, state = list(views.load_views()), plan.fingerprint(), kept.state_of(copied)
    for folder in ("sql", "sql/window", "sql/macros", "profiles"):
        for name in (".#a.sql", ".#README.md", ".b.toml"):
            (copied / folder / name).symlink_to("me@host.1")
        (copied / folder / "passes.sql~").write_text("select 1")
    assert list(views.load_views()) == names
    assert (plan.fingerprint(), kept.state_of(copied)) == (key, state)


def test_another_version_of_the_modules_reads_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kept.state_of(data_folder("sql"))
    shutil.copytree(Path(kept.__file__).parent, tmp_path / "package")
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "package" / "kept.py"))
    second = kept.state_of(data_folder("sql"))
    with (tmp_path / "package" / "views.py").open("a") as file:
        file.write("# a word\n")
    assert len({first, second, kept.state_of(data_folder("sql"))}) == 3
