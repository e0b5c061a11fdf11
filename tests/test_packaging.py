"""A wheel carries the package, sql/ and profiles/, nothing else, and works from where it lies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from trace_sql import __version__
from trace_sql.profile import load_profiles
from trace_sql.views import load_views

ROOT = Path(__file__).resolve().parents[1]
DIST_INFO = f"trace_sql-{__version__}.dist-info/"


def build(source: Path, target: str, into: Path) -> Path:
    """Build `source` in place, without isolation, so without a network."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module", params=["checkout", "sdist"])
def wheel(
    request: pytest.FixtureRequest, sdist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    source = ROOT
    if request.param == "sdist":
        folder = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = folder.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


def test_a_wheel_holds_the_package_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {f"trace_sql/{path.name}" for path in (ROOT / "trace_sql").glob("*.py")}
    for folder, pattern in (("sql", "*/*.sql"), ("profiles", "**/*.toml")):
        for path in (ROOT / folder).glob(pattern):
            expected.add(f"trace_sql/_data/{path.relative_to(ROOT).as_posix()}")
    # A folder's README explains it wherever it lies.
    readmes = {
        "trace_sql/README.md",
        "trace_sql/_data/sql/README.md",
        "trace_sql/_data/profiles/README.md",
    }
    rest = {name for name in names - expected if not name.startswith(DIST_INFO)}
    assert expected - names == set()
    assert rest - readmes == set()
    assert {f"{DIST_INFO}{name}" for name in ("METADATA", "entry_points.txt")} <= names
    assert f"{DIST_INFO}licenses/LICENSE" in names


def test_a_wheel_finds_its_own_data(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import json, trace_sql; from trace_sql.resources import data_folder;"
        "from trace_sql.views import load_views; from trace_sql.profile import load_profiles;"
        "print(json.dumps([str(data_folder('sql')), str(data_folder('profiles')),"
        " trace_sql.__file__, sorted(load_views()), sorted(load_profiles())]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
    )
    sql, profiles, package, views, names = json.loads(done.stdout)
    site = (tmp_path / "site" / "trace_sql").resolve()
    assert Path(package).resolve().parent == site
    assert Path(sql).resolve() == site / "_data" / "sql"
    assert Path(profiles).resolve() == site / "_data" / "profiles"
    assert views == sorted(load_views())
    assert names == sorted(load_profiles())


def test_a_source_archive_can_run_its_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "Makefile", "LICENSE"}
    wanted |= {path.name for path in ROOT.glob("*.md")}
    for folder, pattern in (("tests", "*.py"), ("fixtures", "*.py"), ("fixtures", "*/*")):
        wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob(pattern)}
    assert {name for name in wanted - names if "__pycache__" not in name} == set()
